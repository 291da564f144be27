// Checks an op stream before it is replayed.
#pragma once

#include "stream.hpp"

namespace mallard::replay {

/// Data about a stream that a check collects.
struct check_result {
    static constexpr std::size_t samples = 4096;

    std::size_t threads_peak = 0;   ///< peak number of live threads, in the order of the walk
    std::uint64_t allocations = 0;  ///< number of ops that allocate a block
    std::uint64_t sizes[samples]{}; ///< random sample of allocation sizes

    /// Returns the number of values in `sizes`.
    std::size_t sampled() const noexcept
    {
        return allocations < samples ? static_cast<std::size_t>(allocations) : samples;
    }
};

/// Visits all ops, and ends the process in each of these cases, because the stream cannot be
/// replayed:
///   - a slot, thread, target, kind or alignment does not exist;
///   - an op frees a block that is not in its slot, or with another layout, target or instance;
///   - an op allocates to a slot that has a block of malloc (a slot with a local block is allowed,
///     because a plan that frees all blocks of an allocator together drops the single frees);
///   - a target is used while it is closed, or by two threads although it is not shared;
///   - a thread ends early, is not started exactly once, or waits forever (see `walk`).
/// The ops are visited in only one order, so this check can miss a missing edge between threads.
void check(stream const& of, windows& memory, check_result& result) noexcept;

/// Finds missing edges between threads. An edge makes one thread wait until another thread has
/// reached a position. `check` must have accepted the stream before. For each thread, this function
/// checks the stream again, in an order in which that thread comes last. The process ends if an op
/// cannot be replayed in such an order, or if the previous op of the same slot is another op than
/// in the usual order. The check finds every missing edge. If the stream lacks an edge from thread
/// T to an op that needs this edge, the order in which T comes last has that op before the op of T.
/// Returns the number of orders.
std::size_t check_edges(stream const& of, windows& memory) noexcept;

} // namespace mallard::replay
