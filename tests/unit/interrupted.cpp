// Lock-free protocols that are interrupted after each instruction by calls that another thread
// could make.
#include "../support/single_step.hpp"
#include "../support/sources.hpp"

#include <mallard/pool.hpp>
#include <mallard/shared_slot_map.hpp>
#include <mallard/sync.hpp>

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <vector>

namespace {

using namespace mallard::testing;
using namespace mallard;

/// The ABA problem: during an allocation, another thread pops two blocks and pushes the first one
/// back. The top block is the same as before, but the block below the top is another one. Only the
/// tag of the head differs.
TEST(lock_free_pool,
     never_allocates_a_block_twice_when_the_top_is_popped_and_pushed_during_an_allocation)
{
    if (char const* const why = single_step::refused())
        GTEST_SKIP() << why;
    constexpr pool_options options{
        .block = 64, .grow = growth::none(4096), .threads = sync::lock_free};
    std::size_t steps = 0;
    for (bool interrupted = true; interrupted; steps = single_step::after(steps)) {
        pool<default_heap, options> blocks;
        std::array<void*, 3> all;
        for (void*& block : all)
            block = blocks.allocate();
        for (void* const block : all)
            blocks.deallocate(block);
        void *mine = nullptr, *of_other = nullptr;
        interrupted = single_step::interrupts(
            steps, [&] { mine = blocks.try_allocate(); },
            [&] {
                void* const top = blocks.allocate();
                of_other = blocks.allocate();
                blocks.deallocate(top);
            });
        EXPECT_NE(mine, of_other) << "after " << steps << " instructions";
        void* const next = blocks.allocate();
        EXPECT_TRUE(next != mine && next != of_other) << "after " << steps << " instructions";
        for (void* const block : {mine, of_other, next})
            if (block != nullptr)
                blocks.deallocate(block);
    }
    EXPECT_GT(steps, 5U);
}

/// During a free, another thread pops the top, so the compare-exchange of the free must be
/// repeated.
TEST(lock_free_pool, loses_no_block_when_a_free_is_interrupted)
{
    if (char const* const why = single_step::refused())
        GTEST_SKIP() << why;
    constexpr pool_options options{
        .block = 64, .grow = growth::none(4096), .threads = sync::lock_free};
    std::size_t steps = 0;
    for (bool interrupted = true; interrupted; steps = single_step::after(steps)) {
        pool<default_heap, options> blocks;
        void* const below = blocks.allocate();
        void* const mine = blocks.allocate();
        blocks.deallocate(below);
        void* of_other = nullptr;
        interrupted = single_step::interrupts(
            steps, [&] { blocks.deallocate(mine); }, [&] { of_other = blocks.try_allocate(); });
        EXPECT_EQ(blocks.stats().blocks_live, of_other != nullptr ? 1U : 0U)
            << "after " << steps << " instructions";
        std::size_t left = 0;
        while (blocks.try_allocate() != nullptr)
            ++left;
        EXPECT_EQ(left + (of_other != nullptr ? 1 : 0), 4096U / (64 + 4))
            << "after " << steps << " instructions";
    }
    EXPECT_GT(steps, 5U);
}

/// A signal handler may use the pool, whichever instruction it interrupts.
TEST(lock_free_pool, can_be_used_by_a_signal_handler_that_interrupts_an_allocation)
{
    if (char const* const why = single_step::refused())
        GTEST_SKIP() << why;
    constexpr pool_options options{
        .block = 64, .grow = growth::none(200), .threads = sync::lock_free}; // room for two blocks
    std::size_t steps = 0;
    for (bool interrupted = true; interrupted; steps = single_step::after(steps)) {
        pool<default_heap, options> blocks;
        blocks.deallocate(blocks.allocate()); // makes the pool request its chunk
        void *mine = nullptr, *of_handler = nullptr;
        interrupted = single_step::interrupts(
            steps, [&] { mine = blocks.try_allocate(); },
            [&] { of_handler = blocks.try_allocate(); });
        ASSERT_NE(mine, nullptr) << "after " << steps << " instructions";
        EXPECT_NE(mine, of_handler) << "after " << steps << " instructions";
        if (of_handler != nullptr) {
            EXPECT_EQ(blocks.try_allocate(), nullptr) << "both blocks are in use";
        }
    }
    EXPECT_GT(steps, 5U);
}

TEST(lock_free_pool, requests_one_chunk_and_fails_when_it_is_full)
{
    if (char const* const why = single_step::refused())
        GTEST_SKIP() << why;
    failing_source heap;
    constexpr pool_options options{
        .block = 64, .grow = growth::none(4096), .threads = sync::lock_free};
    pool<ref<failing_source>, options> blocks{ref(heap)};
    EXPECT_EQ(heap.calls(), 0U);
    std::vector<void*> all;
    while (void* const block = blocks.try_allocate())
        all.push_back(block);
    EXPECT_THROW(static_cast<void>(blocks.allocate()), std::bad_alloc);
    EXPECT_EQ(all.size(), 4096U / (64 + 4));
    EXPECT_EQ(heap.calls(), 1U);
    blocks.deallocate(all.back());
    EXPECT_EQ(blocks.classify(all.back()), validity::invalid);
    EXPECT_EQ(blocks.allocate(), all.back());
    blocks.deallocate_batch(all);
    blocks.trim();
    EXPECT_EQ(heap.bytes(), 0U);
    EXPECT_NE(blocks.try_allocate(), nullptr) << "after a trim the pool takes its chunk again";
}

struct wide {
    std::array<std::uint64_t, 4> words;
    explicit wide(std::uint64_t n) { words.fill(n); }
    bool is_all(std::uint64_t n) const
    {
        return std::all_of(words.begin(), words.end(), [n](auto w) { return w == n; });
    }
};

TEST(shared_slot_map, returns_nothing_when_the_element_is_replaced_during_the_copy)
{
    if (char const* const why = single_step::refused())
        GTEST_SKIP() << why;
    using map_type = shared_slot_map<wide>;
    map_type map;
    std::size_t steps = 0;
    for (bool interrupted = true; interrupted; steps = single_step::after(steps)) {
        map_type::key_type const key = map.emplace(1U);
        map_type::key_type later{};
        std::optional<wide> copy;
        interrupted = single_step::interrupts(
            steps, [&] { copy = map.read(key); },
            [&] {
                map.remove(key);
                later = map.emplace(2U); // reuses the same slot
            });
        EXPECT_TRUE(!copy || copy->is_all(1)) << "after " << steps << " instructions";
        map.remove(key);
        map.remove(later);
    }
    EXPECT_GT(steps, 5U);
}

} // namespace
