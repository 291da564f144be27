// Tests how many free blocks the cache of a thread keeps, and when other threads get these blocks.
#include "../support/threads.hpp"

#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <gtest/gtest.h>
#include <vector>

namespace {

using namespace mallard::testing;
using namespace mallard;

template <class Pool>
std::vector<void*> allocate(Pool& from, std::size_t count)
{
    std::vector<void*> blocks(count);
    for (void*& block : blocks)
        block = from.allocate();
    return blocks;
}

template <class Pool>
void deallocate(Pool& to, const std::vector<void*>& blocks)
{
    for (void* const block : blocks)
        to.deallocate(block);
}

/// Expects that a pool caches at most 1,024 blocks of 8 bytes, although the option `cached_bytes`
/// allows 32,768 of them.
template <mallard::sync Threads>
void expect_at_most_1024_in_the_array()
{
    pool<default_heap, pool_options{.block = 8, .threads = Threads}> small;
    for (int i = 0; i < 20; ++i) // makes the array grow to its largest size
        deallocate(small, allocate(small, 10'000));
    std::vector<void*> const blocks = allocate(small, 10'000);
    std::size_t const flushes = small.stats().flushes;
    deallocate(small, blocks);
    EXPECT_GE(small.stats().flushes - flushes, (10'000 - 1024) / 1024U);
}

TEST(thread_cached_pool, caches_at_most_1024_small_blocks_for_a_thread)
{
    expect_at_most_1024_in_the_array<mallard::sync::thread_cached>();
}

TEST(ordered_pool, caches_at_most_1024_small_blocks)
{
    expect_at_most_1024_in_the_array<mallard::sync::none>();
    expect_at_most_1024_in_the_array<mallard::sync::mutex>();
}

TEST(thread_cached_pool, uses_the_blocks_of_an_exited_thread_before_it_requests_a_chunk)
{
    pool<default_heap, pool_options{.block = 8, .threads = mallard::sync::thread_cached}> blocks;
    gate alive, ended;
    std::vector<void*> mine;
    std::size_t chunks = 0;
    std::jthread other([&] {
        blocks.deallocate(blocks.allocate()); // from now on, this thread has a separate cache
        alive.open();
        ended.wait();
        chunks = blocks.stats().chunks;
        mine = allocate(blocks, 50'000);
    });
    alive.wait();
    in_a_thread([&] { deallocate(blocks, allocate(blocks, 50'000)); });
    ended.open();
    other.join();
    EXPECT_EQ(blocks.stats().chunks, chunks);
    deallocate(blocks, mine);
}

/// A regression test: after a release, the caches of size classes that were not used again still
/// had the bounds of an array that had been returned to the source.
TEST(thread_cached_multipool, frees_a_block_of_another_thread_after_a_release)
{
    multipool<default_heap, multipool_options{.threads = mallard::sync::thread_cached}> sizes;
    sizes.deallocate(sizes.allocate({24, 8}), {24, 8});
    sizes.release();
    void* const other_size = sizes.allocate({100, 8}); // this thread has the same cache again
    void* of_other = nullptr;
    in_a_thread([&] { of_other = sizes.allocate({24, 8}); });
    sizes.deallocate(of_other, {24, 8});
    sizes.deallocate(other_size, {100, 8});
    EXPECT_EQ(sizes.stats().blocks_live, 0U);
}

} // namespace
