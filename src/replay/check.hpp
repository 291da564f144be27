// Checks an op stream before it is played.
#pragma once

#include "stream.hpp"

namespace mallard::replay {

/// Numbers about a stream that a check collects.
struct check_result {
    static constexpr std::size_t samples = 4096;

    std::size_t threads_peak = 0;   ///< peak of the live threads, in the order of the walk
    std::uint64_t allocations = 0;  ///< ops that allocate a block
    std::uint64_t sizes[samples]{}; ///< sizes of allocations, each with the same probability

    /// The number of values in `sizes`.
    std::size_t sampled() const noexcept
    {
        return allocations < samples ? static_cast<std::size_t>(allocations) : samples;
    }
};

/// Visits all ops, and ends the process if one of them cannot be played:
///   - a slot, thread, target, kind or alignment does not exist;
///   - an op frees a block that is not in its slot, or with another layout, target or instance;
///   - an op allocates to a slot that has a block of malloc (a slot with a local block is allowed,
///     because wink-out may have dropped the free of that block);
///   - a target is used while it is closed, or by two threads although it is not shared;
///   - a thread ends early, is not started exactly once, or waits for ever (see `walk`).
/// The ops are visited in one order, so a missing edge between threads may not be found.
void check(stream const& of, windows& memory, check_result& result) noexcept;

/// Finds missing edges between threads. Checks a stream once more for each thread, in an order in
/// which that thread comes last. `check` must have accepted the stream before. Ends the process if
/// an op cannot be played in such an order, or if the previous op of its slot is not the same as in
/// the usual order. This finds every missing edge: if an op needs an edge from thread T and the
/// stream lacks the edge, then the order in which T comes last has the op before the op of T.
/// Returns the number of orders.
std::size_t check_edges(stream const& of, windows& memory) noexcept;

} // namespace mallard::replay
