// Writes into the first word of each block which thread allocated it and, if sizes are mixed, the
// size of the block.
#pragma once

#include <bench/barrier.hpp>
#include <bench/table.hpp>
#include <bench/threads/contenders.hpp>
#include <bench/threads/crew.hpp>

#include <cstdint>
#include <cstdlib>

namespace mallard::bench {

/// Whether a contender allocates blocks of any size. Contenders for which this is false allocate
/// blocks of 64 bytes.
template <class C>
concept any_size = requires(C& blocks) { blocks.allocate(std::size_t{64}, std::size_t{8}); };

template <class Blocks>
void* take(Blocks& blocks, table<std::uint32_t> const& sizes, std::size_t thread, std::size_t step)
{
    void* block = nullptr;
    std::uint64_t bytes = 0;
    if constexpr (any_size<Blocks>)
        block = blocks.allocate(bytes = sizes[step % sizes.size()], 8);
    else
        block = blocks.allocate();
    touch(block, thread + (bytes << 32));
    return block;
}

template <class Blocks>
void give(Blocks& blocks, void* block)
{
    if constexpr (any_size<Blocks>)
        blocks.deallocate(block, *static_cast<const std::uint64_t*>(block) >> 32, 8);
    else
        blocks.deallocate(block);
}

/// Returns the thread that allocated the block. Aborts if the block was overwritten.
inline std::size_t owner_of(const void* block, std::size_t threads)
{
    auto const owner = static_cast<std::uint32_t>(*static_cast<const std::uint64_t*>(block));
    if (owner >= threads)
        std::abort();
    return owner;
}

/// What a thread counts in a round.
struct alignas(128) pair_counts {
    std::size_t steps = 0;
    std::size_t freed = 0;
    std::size_t remote = 0; ///< frees by a thread that did not allocate the block

    void free(std::size_t owner, std::size_t thread) noexcept
    {
        freed += 1;
        remote += owner != thread;
    }
};

/// Returns the figures of a case: wall time and CPU time of an allocation and its free, and the
/// share of blocks that another thread freed.
inline std::vector<figure> costs_and_remote(std::string const& case_name, std::size_t threads)
{
    std::vector<figure> figures = costs(case_name, threads);
    figures.push_back({case_name, "remote_percent", "", static_cast<int>(threads)});
    return figures;
}

inline void sum_up(work_time taken, std::span<const pair_counts> counts, std::span<double> out)
{
    double steps = 0;
    double freed = 0;
    double remote = 0;
    for (pair_counts const& c : counts) {
        steps += static_cast<double>(c.steps);
        freed += static_cast<double>(c.freed);
        remote += static_cast<double>(c.remote);
    }
    out[0] = taken.wall_ns / steps;
    out[1] = taken.cpu_ns / steps;
    out[2] = freed == 0 ? 0 : 100 * remote / freed;
}

} // namespace mallard::bench
