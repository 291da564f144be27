// Benchmark IV of J. Lakos (ACCU 2017): threads that allocate at the same time, each from a
// separate allocator. Lakos did not measure the further cases, such as threads that share an
// allocator, that free each other's blocks, or that write to blocks in the same cache line.
#pragma once

#include <bench/lab/play.hpp>
#include <bench/threads/crew.hpp>
#include <bench/threads/ring.hpp>

#include <mallard/multipool.hpp>
#include <mallard/sync.hpp>

#include <boost/container/pmr/synchronized_pool_resource.hpp>

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace mallard::bench::lab {

/// The parameters of one process of this benchmark. The kind `faithful` measures in the same way as
/// Lakos's program, with its mistakes; `corrected` measures without the mistakes.
struct contention_cell {
    enum class kind : std::size_t { faithful, corrected, shared, remote, sharing };

    kind of = kind::corrected;
    std::size_t operations = 0; ///< allocations of each thread
    std::size_t block = 0;      ///< bytes
    std::size_t threads = 1;
    std::size_t rounds = 0; ///< only for `faithful`: rounds in a sample
    double least_ns = 0;    ///< only for `corrected`: minimum of the total time
};

template <class Memory>
void take_and_give(Memory& memory, contention_cell const& cell)
{
    for (std::size_t i = 0; i < cell.operations; ++i)
        memory.deallocate(increment(memory.allocate(cell.block)), cell.block);
}

/// Constructs, uses and destroys an allocator that only one thread uses.
template <class Memory>
void live_alone(contention_cell const& cell)
{
    Memory memory({.buffer = {}, .largest = cell.block});
    take_and_give(memory, cell);
}

// Allocators that any number of threads may call.
template <sync Threads>
using shared_multipool = multipool<default_heap, multipool_options{.threads = Threads}>;

struct of_std_shared : of_std {
    using pool = std::pmr::synchronized_pool_resource;
};
struct of_boost_shared : of_boost {
    using pool = boost::container::pmr::synchronized_pool_resource;
};

/// Measures the loop without an allocator. Every thread has one block and never frees it.
class no_allocator {
public:
    explicit no_allocator(budget) {}
    void* allocate(std::size_t) noexcept
    {
        alignas(128) thread_local std::array<std::byte, 4096> block{};
        return block.data();
    }
    void deallocate(void*, std::size_t) noexcept {}
};

template <class F>
void cast_shared(F f)
{
    cast_heap(f);
    f.template operator()<no_allocator>(part{"limit", 1});
    f.template operator()<mallard_typed<shared_multipool<sync::mutex>>>(part{"mallard/mutex", 7});
    f.template operator()<mallard_based<shared_multipool<sync::mutex>>>(part{"mallard/mutex", 9});
    f.template operator()<mallard_typed<shared_multipool<sync::thread_cached>>>(
        part{"mallard/thread_cached", 7});
    f.template operator()<mallard_based<shared_multipool<sync::thread_cached>>>(
        part{"mallard/thread_cached", 9});
    f.template operator()<pool_of<of_std_shared>>(part{"libstdc++/synchronized", 9});
    f.template operator()<pool_of<of_boost_shared>>(part{"boost/synchronized", 9});
}

/// Each thread allocates blocks, and its neighbour frees them.
template <class Memory>
class ring_of_threads {
public:
    ring_of_threads(Memory& memory, contention_cell const& cell)
        : memory_(memory), cell_(cell), places_(std::make_unique<place[]>(cell.threads))
    {
    }

    /// Does the work of one thread. The thread receives as many blocks as it sends. While the
    /// thread can neither send nor receive, it yields.
    void work(std::size_t thread)
    {
        ring<256>& next = places_[thread + 1 == cell_.threads ? 0 : thread + 1].sent_here;
        place& here = places_[thread];
        here.awaited += static_cast<std::ptrdiff_t>(cell_.operations);
        for (std::size_t i = 0; i < cell_.operations; ++i) {
            void* const block = increment(memory_.allocate(cell_.block));
            while (!next.push(block))
                free_some(here);
            if (i % 32 == 31)
                free_all(here);
        }
        while (here.awaited > 0)
            free_some(here);
    }

private:
    struct place {
        ring<256> sent_here;
        // Blocks still to receive. Negative if the neighbour has sent more than this thread has
        // sent.
        std::ptrdiff_t awaited = 0;
    };

    bool free_all(place& here)
    {
        std::ptrdiff_t const before = here.awaited;
        here.sent_here.pop_all([&](void* block) {
            memory_.deallocate(block, cell_.block);
            here.awaited -= 1;
        });
        return here.awaited != before;
    }

    void free_some(place& here)
    {
        if (!free_all(here))
            sched_yield();
    }

    Memory& memory_;
    contention_cell const& cell_;
    std::unique_ptr<place[]> places_;
};

/// Each thread allocates a block, writes to the block many times, then allocates another. An
/// operation is a write.
///
/// The thread does not read the block, because a read waits for the write before it, and the time
/// of this wait depends on the address.
template <class Memory>
void write_to_its_own(Memory& memory, contention_cell const& cell)
{
    constexpr std::size_t writes = 4096;
    for (std::size_t i = 0; i < cell.operations; i += writes) {
        void* const block = memory.allocate(cell.block);
        for (std::size_t w = 0; w < writes; ++w)
            touch_byte(block, w);
        memory.deallocate(block, cell.block);
    }
}

} // namespace mallard::bench::lab
