// Time, as the slow paths see it. Nobody else looks at a clock, and no thread is started
// for it: a process that calls neither malloc nor free does nothing here either.
#pragma once

#include "front.hpp"

namespace mallard::engine {

inline constexpr std::uint64_t epoch_milliseconds = 250;
inline constexpr std::uint32_t slow_paths_a_look = 64;

/// When an epoch has ended: what this front keeps, then what all keep together.
[[gnu::cold, gnu::noinline]] void look_at_clock(front& f) noexcept;

/// Each slow path passes here.
inline void pass(front& f) noexcept
{
    std::uint32_t const passed = f.slow_paths.load(std::memory_order_relaxed) + 1;
    f.slow_paths.store(passed, std::memory_order_relaxed);
    if (passed % slow_paths_a_look == 0) [[unlikely]]
        look_at_clock(f);
}

} // namespace mallard::engine
