#include <mallard/persist/segment_pool.hpp>

#include "../support/choices.hpp"
#include "../support/segments.hpp"
#include "../support/threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <vector>

namespace {

using namespace mallard::testing;
using mallard::segment_pool;
using mallard::shared_memory;

template <std::size_t Block>
struct board {
    board(shared_memory& segment, std::uint32_t count) : blocks(segment, count) {}
    segment_pool<Block> blocks;
};

/// A segment whose root is a pool.
template <std::size_t Block>
struct pool_of {
    explicit pool_of(std::uint32_t count)
        : segment(required(shared_memory::anonymous(count * (Block + 4) + 4096))),
          blocks(segment.root<board<Block>>(segment, count)->blocks)
    {
    }
    shared_memory segment;
    segment_pool<Block>& blocks;
};

static_assert(!std::is_copy_constructible_v<segment_pool<8>>);
static_assert(!std::is_move_constructible_v<segment_pool<8>>);
static_assert(segment_pool<48>::block_bytes() == 48 && segment_pool<48>::block_align() == 16);
static_assert(segment_pool<1>::block_bytes() == 1);
static_assert(segment_pool<24, 64>::block_bytes() == 64);

TEST(segment_pool, allocates_each_block_once_and_then_fails)
{
    pool_of<48> p(1000);
    EXPECT_EQ(p.blocks.capacity(), 1000U);
    std::set<void*> all;
    for (int i = 0; i < 1000; ++i) {
        void* const block = p.blocks.allocate();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0U);
        EXPECT_TRUE(p.segment.owns(block));
        std::memset(block, i, 48);
        EXPECT_TRUE(all.insert(block).second);
        EXPECT_EQ(p.blocks.at(p.blocks.number_of(block)), block);
        EXPECT_LT(p.blocks.number_of(block), 1000U);
    }
    EXPECT_EQ(p.blocks.try_allocate(), nullptr);
    EXPECT_THROW(static_cast<void>(p.blocks.allocate()), std::bad_alloc);
    EXPECT_EQ(p.blocks.stats().blocks_live, 1000U);
    p.blocks.deallocate(*all.begin());
    EXPECT_EQ(p.blocks.allocate(), *all.begin());
}

TEST(segment_pool, touches_no_block_before_it_is_allocated)
{
    pool_of<4096> p(100);
    p.blocks.deallocate(p.blocks.allocate());
    EXPECT_EQ(p.blocks.number_of(p.blocks.allocate()), 0U) << "the one freed last";
    EXPECT_EQ(p.blocks.number_of(p.blocks.allocate()), 1U);
}

TEST(segment_pool, changes_nothing_when_the_segment_has_no_room)
{
    auto segment = required(shared_memory::anonymous(4096));
    auto const before = segment.stats();
    EXPECT_THROW(segment_pool<64>(segment, 64), std::bad_alloc);
    EXPECT_THROW(segment_pool<SIZE_MAX / 2>(segment, 64), std::bad_alloc);
    EXPECT_THROW(segment_pool<64>(segment, UINT32_MAX), std::bad_alloc);
    EXPECT_EQ(segment.stats(), before);
    segment_pool<64> const of_none(segment, 0);
    EXPECT_EQ(of_none.capacity(), 0U);
}

TEST(segment_pool, has_the_same_blocks_at_each_address)
{
    pool_of<8> p(10);
    auto elsewhere = required(shared_memory::attach(p.segment.descriptor()));
    auto& blocks = elsewhere.root<board<8>>(elsewhere, 10U)->blocks;
    ASSERT_NE(&blocks, &p.blocks);
    auto* const here = static_cast<std::uint64_t*>(p.blocks.allocate());
    *here = 7;
    auto* const there = static_cast<std::uint64_t*>(blocks.at(p.blocks.number_of(here)));
    EXPECT_NE(here, there);
    EXPECT_EQ(*there, 7U);
    blocks.deallocate(there);
    EXPECT_EQ(p.blocks.allocate(), here);
}

TEST(segment_pool, agrees_with_a_model_in_random_programs)
{
    seeded choose(1);
    pool_of<24> p(200);
    std::vector<std::byte*> live;
    for (int step = 0; step < 100'000; ++step) {
        if (choose(5) < 3) {
            auto* const block = static_cast<std::byte*>(p.blocks.try_allocate());
            ASSERT_EQ(block == nullptr, live.size() == 200);
            if (block != nullptr) {
                live.push_back(block);
                std::memset(block, static_cast<int>(live.size()), 24);
            }
        } else if (!live.empty()) {
            std::swap(live[choose(live.size())], live.back());
            p.blocks.deallocate(live.back());
            live.pop_back();
        }
    }
    std::set<void*> const expected(live.begin(), live.end());
    std::set<void*> found;
    EXPECT_EQ(p.blocks.stats().blocks_live, live.size());
    p.blocks.for_each([&](void* block) {
        found.insert(block);
        p.blocks.deallocate(block);
    });
    EXPECT_EQ(found, expected);
    EXPECT_EQ(p.blocks.stats().blocks_live, 0U);
}

TEST(segment_pool, never_allocates_a_block_to_two_threads)
{
    constexpr std::uint32_t count = 64;
    pool_of<8> p(count);
    std::array<std::atomic<int>, count> owners{};
    in_threads(4, [&](std::size_t me) {
        seeded choose(me);
        std::vector<void*> mine;
        for (std::size_t i = 0; i < rounds(200'000); ++i) {
            void* const block = choose(2) == 0 ? p.blocks.try_allocate() : nullptr;
            if (block != nullptr) {
                require(owners[p.blocks.number_of(block)]++ == 0, "a block has one owner");
                std::memset(block, static_cast<int>(me), 8);
                mine.push_back(block);
            } else if (!mine.empty()) {
                std::swap(mine[choose(mine.size())], mine.back());
                require(owners[p.blocks.number_of(mine.back())]-- == 1, "it stays there");
                p.blocks.deallocate(mine.back());
                mine.pop_back();
            }
        }
        for (void* const block : mine) {
            owners[p.blocks.number_of(block)] = 0;
            p.blocks.deallocate(block);
        }
    });
    std::set<void*> all;
    while (void* const block = p.blocks.try_allocate())
        all.insert(block);
    EXPECT_EQ(all.size(), count);
}

TEST(segment_pool, fails_only_when_no_block_is_free)
{
    constexpr std::uint32_t threads = 4;
    pool_of<8> p(threads); // one block for each thread, so no allocation may fail
    in_threads(threads, [&](std::size_t) {
        for (std::size_t i = 0; i < rounds(200'000); ++i) {
            void* const block = p.blocks.try_allocate();
            require(block != nullptr, "one is free");
            p.blocks.deallocate(block);
        }
    });
}

} // namespace
