// The JSON object that the player prints.
#pragma once

#include "account.hpp"
#include "litter.hpp"
#include "play.hpp"
#include "virtual_call.hpp"

namespace mallard::replay {

/// Prints what a replay has measured.
void print(stream const& of, options const& chosen, play const& played, play_result const& result,
           litter_left const& litter) noexcept;

/// Prints what the local targets have taken.
void print(stream const& of, account const& counted) noexcept;

/// Prints the cost of virtual calls.
void print(virtual_call_cost const& cost) noexcept;

/// Prints in how many orders a stream was checked.
void print_checked(stream const& of, std::size_t orders) noexcept;

} // namespace mallard::replay
