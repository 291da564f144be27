// Prints the result of the replayer as a JSON object.
#pragma once

#include "account.hpp"
#include "litter.hpp"
#include "play.hpp"
#include "virtual_call.hpp"

namespace mallard::replay {

/// Prints the measurements of a replay.
void print(stream const& of, options const& chosen, play const& played, play_result const& result,
           litter_left const& litter) noexcept;

/// Prints the memory use of the local targets (allocators).
void print(stream const& of, account const& counted) noexcept;

/// Prints the cost of virtual calls.
void print(virtual_call_cost const& cost) noexcept;

/// Prints the number of orders in which a stream was checked.
void print_checked(stream const& of, std::size_t orders) noexcept;

} // namespace mallard::replay
