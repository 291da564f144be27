// What std::pmr::unsynchronized_pool_resource promises, of mallard::pmr::multipool.
#include "../support/model.hpp"
#include "../support/sources.hpp"

#include <mallard/pmr.hpp>

#include <gtest/gtest.h>

#include <deque>

namespace {

using namespace mallard::testing;
using mallard::pmr::multipool;

class pool_resource : public ::testing::Test {
public:
    failing_resource upstream;
    failing_source& calls = upstream.source;
    multipool own{&upstream};
    std::pmr::memory_resource& r = own;
    static constexpr std::size_t largest = multipool::largest();
};

TEST_F(pool_resource, serves_a_freed_block_again_without_upstream)
{
    for (std::size_t const bytes : {1u, 8u, 100u, 1000u, 32768u}) {
        r.deallocate(r.allocate(bytes), bytes);
        std::size_t const before = calls.calls();
        for (int i = 0; i < 1000; ++i)
            r.deallocate(r.allocate(bytes), bytes);
        EXPECT_EQ(calls.calls(), before);
    }
}

TEST_F(pool_resource, pools_blocks_up_to_the_largest_inclusive)
{
    EXPECT_EQ(largest, 32768u);
    for (std::size_t const bytes : {largest / 2, largest - 1, largest}) {
        std::size_t const before = calls.calls();
        for (int i = 0; i < 1000; ++i)
            std::ignore = r.allocate(bytes);
        EXPECT_LT(calls.calls() - before, 300u) << bytes;
    }
}

TEST_F(pool_resource, hands_larger_blocks_to_upstream_one_by_one_and_back_at_once)
{
    for (std::size_t const bytes : {largest + 1, 10 * largest, std::size_t{1} << 20}) {
        std::size_t const before = calls.calls();
        std::size_t const held = calls.bytes();
        void* const block = r.allocate(bytes);
        EXPECT_EQ(calls.calls(), before + 1);
        r.deallocate(block, bytes);
        EXPECT_EQ(calls.bytes(), held);
    }
}

TEST_F(pool_resource, keeps_blocks_of_every_size_apart_beyond_the_end_of_a_chunk)
{
    model blocks;
    for (std::size_t bytes = 1; bytes <= largest + 64; bytes += bytes < 300 ? 1 : 97)
        for (int i = 0; i < 20; ++i)
            blocks.add(r.allocate(bytes, 1), {bytes, 1});
    blocks.verify();
    while (!blocks.empty()) {
        void* const block = blocks[0];
        std::size_t const bytes = blocks.remove(block).bytes;
        r.deallocate(block, bytes, 1);
    }
    EXPECT_EQ(own.stats().blocks_live, 0u);
}

TEST_F(pool_resource, pools_blocks_whose_alignment_is_their_size_up_to_a_cache_line)
{
    for (std::size_t size = 1; size <= mallard::cache_line_bytes; size *= 2) {
        model blocks;
        std::size_t const before = calls.calls();
        for (int i = 0; i < 300; ++i)
            blocks.add(r.allocate(size, size), {size, size});
        EXPECT_LT(calls.calls() - before, 100u) << size;
        blocks.verify();
    }
}

TEST_F(pool_resource, needs_upstream_no_more_once_it_holds_a_queue_at_its_longest)
{
    std::deque<void*> queue;
    for (int i = 0; i < 20'000; ++i)
        queue.push_back(r.allocate(100));
    std::size_t const before = calls.calls();
    for (int i = 0; i < 20'000; ++i) {
        r.deallocate(queue.front(), 100);
        queue.pop_front();
        queue.push_back(r.allocate(100));
    }
    EXPECT_EQ(calls.calls(), before);
}

TEST_F(pool_resource, gives_back_on_release_also_what_is_still_in_use)
{
    for (std::size_t const bytes : {1u, 100u, 32768u, 32769u, 100'000u})
        for (int i = 0; i < 100; ++i)
            std::ignore = r.allocate(bytes);
    own.release();
    EXPECT_EQ(calls.bytes(), 0u);
    EXPECT_NE(r.allocate(100), nullptr);
}

TEST_F(pool_resource, tells_its_upstream)
{
    EXPECT_EQ(own.upstream_resource(), &upstream);
}

} // namespace
