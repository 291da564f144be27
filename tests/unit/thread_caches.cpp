// What a pool keeps at hand, for each thread where threads share it, and when others get that.
#include "../support/threads.hpp"

#include <mallard/pool.hpp>

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

/// By `cached_bytes` it would be 32,768 blocks of 8 bytes, and their array as much again.
template <mallard::sync Threads>
void expect_at_most_1024_in_the_array()
{
    pool<default_heap, pool_options{.block = 8, .threads = Threads}> small;
    for (int i = 0; i < 20; ++i) // so that the array grows as far as it may
        deallocate(small, allocate(small, 10'000));
    std::vector<void*> const blocks = allocate(small, 10'000);
    std::size_t const flushes = small.stats().flushes;
    deallocate(small, blocks);
    EXPECT_GE(small.stats().flushes - flushes, (10'000 - 1024) / 1024U);
}

TEST(thread_cached_pool, keeps_at_most_1024_small_blocks_in_the_array_of_a_thread)
{
    expect_at_most_1024_in_the_array<mallard::sync::thread_cached>();
}

TEST(ordered_pool, keeps_at_most_1024_small_blocks_in_its_array)
{
    expect_at_most_1024_in_the_array<mallard::sync::none>();
    expect_at_most_1024_in_the_array<mallard::sync::mutex>();
}

TEST(thread_cached_pool, gives_what_an_ended_thread_left_before_it_takes_a_chunk)
{
    pool<default_heap, pool_options{.block = 8, .threads = mallard::sync::thread_cached}> blocks;
    gate alive, ended;
    std::vector<void*> mine;
    std::size_t chunks = 0;
    std::jthread other([&] {
        blocks.deallocate(blocks.allocate()); // has a cache of its own from now on
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

} // namespace
