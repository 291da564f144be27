// Lock-free protocols, interrupted after each instruction by calls that another thread could make.
#include "../support/single_step.hpp"

#include <mallard/pool.hpp>
#include <mallard/shared_slot_map.hpp>
#include <mallard/sync.hpp>

#include <algorithm>
#include <array>
#include <gtest/gtest.h>

namespace {

using namespace mallard::testing;
using namespace mallard;

/// The ABA problem: during an allocation another thread pops two blocks and pushes the first one
/// back. The top is the same block as before, over another one; only the tag of the head differs.
TEST(lock_free_pool, never_gives_out_a_block_twice_when_the_top_is_popped_and_pushed_meanwhile)
{
    constexpr pool_options options{
        .block = 64, .grow = growth::none(4096), .threads = sync::lock_free};
    std::size_t steps = 0;
    for (bool interrupted = true; interrupted; ++steps) {
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
    using map_type = shared_slot_map<wide>;
    map_type map;
    std::size_t steps = 0;
    for (bool interrupted = true; interrupted; ++steps) {
        map_type::key_type const key = map.emplace(1U);
        map_type::key_type later{};
        std::optional<wide> copy;
        interrupted = single_step::interrupts(
            steps, [&] { copy = map.read(key); },
            [&] {
                map.remove(key);
                later = map.emplace(2U); // in the same slot
            });
        EXPECT_TRUE(!copy || copy->is_all(1)) << "after " << steps << " instructions";
        map.remove(key);
        map.remove(later);
    }
    EXPECT_GT(steps, 5U);
}

} // namespace
