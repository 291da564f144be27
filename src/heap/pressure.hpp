// Whether memory is short around this process: then nothing may lie idle.
#pragma once

#include "../os/cgroup.hpp"

#include <cstdint>

namespace mallard::engine {

/// As of the last look, which is made once a second at most, in passing. Never in the first
/// second: short programs look at nothing.
bool memory_is_short(std::uint64_t now_milliseconds) noexcept;

/// From now on of this group, and not the one that would be found.
void watch_memory(os::cgroup const& group) noexcept;

/// In the child of a fork, which may become a member of another group.
void forget_memory() noexcept;

} // namespace mallard::engine
