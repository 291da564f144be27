// Benchmark III of J. Lakos (ACCU 2017): blocks are freed, the oldest first, and others are
// allocated. At any time, only a part of all memory that was ever allocated is in use.
#pragma once

#include <bench/clock.hpp>
#include <bench/lab/counters.hpp>
#include <bench/lab/play.hpp>

#include <vector>

namespace mallard::bench::lab {

/// The parameters of one process of this benchmark.
struct utilization_cell {
    std::size_t total = 0;  ///< bytes requested from one allocator
    std::size_t active = 0; ///< bytes in use
    std::size_t block = 0;  ///< bytes of each block
    std::size_t lives = 0;  ///< number of allocators, as Lakos does; 0: corrected variant
    double least_ns = 0;    ///< only for the corrected variant: minimum of the total time

    std::size_t count() const noexcept { return total / block; }
    std::size_t held() const noexcept { return active / block; }
};

/// Constructs, uses and destroys a `Memory`.
template <class Memory>
void live(utilization_cell const& cell, std::vector<void*>& blocks)
{
    Memory memory({.buffer = {}, .largest = cell.block});
    for (void*& block : blocks)
        block = increment(memory.allocate(cell.block));
    std::size_t oldest = 0;
    auto const pass = [&] { oldest = oldest + 1 == blocks.size() ? 0 : oldest + 1; };
    for (std::size_t i = blocks.size(); i < cell.count(); ++i, pass()) {
        memory.deallocate(blocks[oldest], cell.block);
        blocks[oldest] = increment(memory.allocate(cell.block));
    }
    for (std::size_t i = 0; i < blocks.size(); ++i, pass())
        memory.deallocate(blocks[oldest], cell.block);
}

/// Constructs, uses and destroys an allocator that can only free all blocks together. The blocks
/// are allocated in groups, and each group uses the memory of the previous group.
template <class Memory>
void live_in_generations(utilization_cell const& cell, std::vector<void*>& blocks)
{
    Memory memory({.buffer = {}, .largest = cell.block});
    for (std::size_t i = 0; i < cell.count(); i += blocks.size()) {
        for (void*& block : blocks)
            block = increment(memory.allocate(cell.block));
        memory.reset();
    }
}

} // namespace mallard::bench::lab
