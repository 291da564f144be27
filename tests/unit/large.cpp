// Tests blocks that a pool allocates from its source because they are too large for the pool.
#include "../support/model.hpp"
#include "../support/sources.hpp"

#include <mallard/detail/pool/large_blocks.hpp>

#include <gtest/gtest.h>

namespace {

using namespace mallard::testing;
using namespace mallard;

class large : public ::testing::Test {
protected:
    void* take(layout l)
    {
        void* const block = blocks.allocate<true>(heap, l.bytes, l.align);
        in_use.add(block, l);
        return block;
    }
    void give(void* block) { blocks.deallocate<true>(heap, block, in_use.remove(block).bytes); }

    failing_source heap;
    large_blocks<> blocks;
    model in_use;
};

TEST_F(large, blocks_have_every_size_and_alignment_and_are_returned_one_by_one)
{
    for (std::size_t const bytes : {0, 1, 7, 8, 9, 4097, 100000})
        for (std::size_t align = 1; align <= std::size_t{2} << 20; align *= 8)
            take({bytes, align});
    EXPECT_EQ(blocks.stats().blocks_live, in_use.count());
    EXPECT_EQ(blocks.stats().bytes_taken, heap.bytes());
    while (!in_use.empty()) { // frees from the middle of the list and from both ends
        std::size_t const before = heap.live().size();
        give(in_use[in_use.count() / 2]);
        EXPECT_EQ(heap.live().size(), before - 1);
    }
    EXPECT_EQ(blocks.stats().blocks_live, 0U);
    EXPECT_EQ(blocks.stats().bytes_taken, 0U);
}

TEST_F(large, blocks_need_little_more_than_their_bytes_from_the_source)
{
    give(take({100000, 4096}));
    EXPECT_EQ(heap.asked().back().align, 4096U);
    EXPECT_LE(heap.asked().back().bytes, 100000U + 64);
}

TEST_F(large, blocks_own_their_bytes_and_no_others_even_if_they_have_0_bytes)
{
    for (std::size_t const bytes : {0, 1, 5000}) {
        auto* const block = static_cast<std::byte*>(take({bytes, 64}));
        EXPECT_TRUE(blocks.owns(block));
        EXPECT_TRUE(blocks.owns(block + (bytes == 0 ? 0 : bytes - 1)));
        EXPECT_FALSE(blocks.owns(block - 1));
        EXPECT_FALSE(blocks.owns(block + bytes + 64));
    }
    blocks.release(heap);
    in_use.clear();
}

TEST_F(large, blocks_are_released_together)
{
    for (int i = 0; i < 100; ++i)
        take({5000});
    blocks.release(heap);
    EXPECT_EQ(heap.bytes(), 0U);
    EXPECT_EQ(blocks.stats().blocks_live, 0U);
    in_use.clear();
}

TEST_F(large, blocks_move_with_their_list)
{
    void* const first = take({5000});
    void* const second = take({5000});
    large_blocks moved(std::move(blocks));
    EXPECT_EQ(blocks.stats().blocks_live, 0U);
    EXPECT_FALSE(blocks.owns(first));
    EXPECT_TRUE(moved.owns(first));
    // Frees the block at the head of the list of large blocks.
    moved.deallocate<true>(heap, second, in_use.remove(second).bytes);
    moved.release(heap);
    in_use.clear();
}

TEST_F(large, blocks_fail_if_the_source_fails_or_the_size_is_near_that_of_the_address_space)
{
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    for (std::size_t const bytes :
         {most, most - 7, most - 64, most / 2 + 1, most / 2, most / 2 - 4096, most / 2 - 4097}) {
        EXPECT_EQ(blocks.allocate<false>(heap, bytes, 16), nullptr);
        EXPECT_THROW(blocks.allocate<true>(heap, bytes, 16), std::bad_alloc);
    }
    heap.fail_from(1);
    EXPECT_EQ(blocks.allocate<false>(heap, 5000, 16), nullptr);
    EXPECT_THROW(blocks.allocate<true>(heap, 5000, 16), std::bad_alloc);
    EXPECT_EQ(blocks.stats().blocks_live, 0U);
    EXPECT_EQ(blocks.stats().bytes_taken, 0U);
}

} // namespace
