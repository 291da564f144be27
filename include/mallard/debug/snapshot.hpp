// What can be known of an allocator at one moment, in one value.
#pragma once

#include <mallard/adapt/adaptor.hpp>
#include <mallard/detail/base/tally.hpp>
#include <mallard/options.hpp>

#include <optional>

namespace mallard {

/// What was asked of an allocator, if it is `counted`, and what it holds, if it knows.
///
/// The two need not agree: a pool of 48-byte blocks that was asked for 40 bytes counts
/// 40 in `calls` and 48 in `memory`.
struct snapshot {
    std::optional<call_counts> calls;
    std::optional<statistics> memory;

    constexpr snapshot() noexcept = default;
    constexpr snapshot(const call_counts& asked) noexcept : calls(asked) {}
    constexpr snapshot(const statistics& held) noexcept : memory(held) {}
    constexpr snapshot(const call_counts& asked, const statistics& held) noexcept
        : calls(asked), memory(held)
    {
    }
};

/// Of any allocator or source; also of one that is not `counted` just now. It walks
/// what `stats` walks, and calls no source.
template <class A>
snapshot snapshot_of(const A& a) noexcept
{
    snapshot s;
    if constexpr (counting<A>)
        s.calls = a.counts();
    if constexpr (measured<A>)
        s.memory = a.stats();
    return s;
}

} // namespace mallard
