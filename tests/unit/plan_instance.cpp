// Tests the local allocators of plans in one thread. A model has the live blocks with their
// contents.
#include "../support/choices.hpp"
#include "../support/length.hpp"
#include "../support/plan_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

namespace {

using namespace mallard::testing;
namespace plan = mallard::plan;

class plan_instance : public ::testing::TestWithParam<std::size_t> {
protected:
    plan_instance()
    {
        start_plan();
        void* const first = allocate_by(GetParam(), 16); // makes the instance of this thread
        free_any(first);
        in = plan::own_rules->of[GetParam()];
    }

    ~plan_instance() override { free_all(false); }

    struct contents {
        std::size_t bytes;
        unsigned char value;
    };

    std::size_t bytes_max() const { return in->rule->block_bytes; }

    void allocate_one(std::size_t bytes)
    {
        void* block = plan::take(*in, bytes);
        if (block == nullptr)
            block = plan::take_slowly(*in, bytes);
        ASSERT_NE(block, nullptr);
        plan::count(*in, bytes);
        last_block = static_cast<std::byte*>(block);
        auto const at = reinterpret_cast<std::uintptr_t>(block);
        EXPECT_EQ(at % 16, 0U);
        EXPECT_TRUE(plan::is_of_plan(block));
        std::size_t const usable = plan::usable_bytes(plan::chunk_of(block), block);
        EXPECT_GE(usable, bytes);
        auto const above = blocks.lower_bound(at);
        EXPECT_TRUE(above == blocks.end() || above->first >= at + usable);
        EXPECT_TRUE(above == blocks.begin() ||
                    std::prev(above)->first + std::prev(above)->second.bytes <= at);
        std::memset(block, next_value, usable);
        blocks[at] = {usable, next_value};
        next_value += 1;
    }

    using live_blocks = std::map<std::uintptr_t, contents>;

    void free_one(live_blocks::iterator which, bool is_from_elsewhere)
    {
        auto* const block = reinterpret_cast<unsigned char*>(which->first);
        ASSERT_TRUE(std::all_of(block, block + which->second.bytes,
                                [&](unsigned char byte) { return byte == which->second.value; }));
        bool const is_quick = which->second.value % 2 == 0;
        blocks.erase(which);
        plan::chunk& c = plan::chunk_of(block);
        ASSERT_EQ(c.owner, in);
        if (is_from_elsewhere)
            plan::give_from_elsewhere(*in, c, block);
        else if (is_quick)
            plan::free_of_rule(block);
        else
            plan::give(*in, c, block);
    }

    void free_all(bool from_elsewhere)
    {
        while (!blocks.empty())
            free_one(blocks.begin(), from_elsewhere);
    }

    live_blocks blocks;
    unsigned char next_value = 0;
    plan::instance* in;
    std::byte* last_block = nullptr;
};

TEST_P(plan_instance, keeps_the_contents_of_random_blocks)
{
    seeded choose(GetParam());
    for (std::size_t i = 0; i < repeated(20'000, 5'000); ++i) {
        // Makes the number of live blocks grow and shrink.
        std::size_t const wanted = 1 + i / 64 * 37 % 500;
        if (blocks.size() < wanted) {
            std::size_t const below = choose(6) == 0 ? bytes_max() : 200;
            allocate_one(1 + choose(below));
        } else {
            auto which = blocks.lower_bound(blocks.begin()->first + choose(std::size_t{1} << 22));
            free_one(which == blocks.end() ? blocks.begin() : which, choose(3) == 0);
        }
    }
}

TEST_P(plan_instance, carves_blocks_only_up_to_the_end_of_the_current_page)
{
    std::size_t const bytes = 48;
    plan::bin const& b = in->bin_for(bytes);
    for (int i = 0; i < 5'000; ++i) {
        std::byte* const fresh = b.fresh;
        allocate_one(bytes);
        if (fresh == b.fresh)
            continue; // the block is from the free list, or from an arena
        auto const end = reinterpret_cast<std::uintptr_t>(
            last_block + plan::usable_bytes(plan::chunk_of(last_block), last_block));
        auto const end_of_cut = reinterpret_cast<std::uintptr_t>(b.fresh);
        EXPECT_EQ((end_of_cut - 1) / 4096, (end - 1) / 4096);
    }
}

TEST_P(plan_instance, uses_at_most_a_fixed_multiple_of_the_live_bytes)
{
    std::size_t const bytes_before = in->rule->held;
    for (std::size_t i = 0; i < 20; ++i) {
        for (std::size_t n = 0; n < 2000; ++n)
            allocate_one(1 + n % 300);
        free_all(i % 2 == 0);
    }
    // A block of the pool has 512 bytes. An arena keeps 16 chunks, and sizes up to 300 bytes have
    // 13 size classes.
    EXPECT_LE(in->rule->held, bytes_before + 2000 * 512 + 34 * plan::chunk_bytes);
}

TEST_P(plan_instance, starts_over_when_all_blocks_are_free)
{
    for (std::size_t n = 0; n < 10'000; ++n)
        allocate_one(1 + n % 400);
    std::size_t const held_before = in->rule->held;
    free_all(false);
    bool const is_arena =
        in->allocator == mallard_plan_arena || in->allocator == mallard_plan_multipool_over_arena;
    if (is_arena)
        EXPECT_LT(in->rule->held, held_before);
    else
        EXPECT_EQ(in->rule->held, held_before);
    for (std::size_t n = 0; n < 10'000; ++n)
        allocate_one(1 + n % 400);
    EXPECT_LE(in->rule->held, held_before + 20 * plan::chunk_bytes);
}

TEST_P(plan_instance, reuses_memory_that_other_threads_have_freed)
{
    for (std::size_t n = 0; n < 5000; ++n)
        allocate_one(100);
    std::size_t const held = in->rule->held;
    for (std::size_t round = 0; round < 20; ++round) {
        free_all(true);
        for (std::size_t n = 0; n < 5000; ++n)
            allocate_one(100);
    }
    EXPECT_LE(in->rule->held, held + 2 * plan::chunk_bytes);
}

TEST_P(plan_instance, resizes_blocks_and_keeps_their_bytes)
{
    seeded choose(GetParam() + 10);
    auto* block = static_cast<unsigned char*>(allocate_by(GetParam(), 10));
    std::memset(block, 7, 10);
    std::size_t bytes = 10;
    for (std::size_t i = 0; i < 2000; ++i) {
        std::size_t const wanted = 1 + choose(choose(4) == 0 ? 40'000 : 2'000);
        block = static_cast<unsigned char*>(reallocate_any(block, wanted));
        ASSERT_NE(block, nullptr);
        for (std::size_t at = 0; at < std::min(bytes, wanted); ++at)
            ASSERT_EQ(block[at], 7);
        std::memset(block, 7, wanted);
        bytes = wanted;
    }
    free_any(block);
}

TEST_P(plan_instance, rejects_blocks_beyond_its_limit)
{
    in->rule->held_max = in->rule->held + 4 * plan::chunk_bytes;
    std::size_t const refused = in->refused.value();
    std::vector<void*> all;
    while (in->refused.value() == refused && all.size() < 200'000)
        all.push_back(allocate_by(GetParam(), 300));
    EXPECT_GT(in->refused.value(), refused);
    EXPECT_LE(in->rule->held, in->rule->held_max);
    for (void* const block : all)
        free_any(block);
}

TEST_P(plan_instance, respects_its_limit_while_the_system_has_no_memory)
{
    plan::instance fresh{};
    fresh.rule = in->rule;
    fresh.allocator = in->allocator;
    in->rule->held_max = in->rule->held.load() - plan::chunk_bytes;
    std::size_t const limit = in->rule->held_max;
    in->rule->held += 100 * plan::chunk_bytes; // as if other threads held them
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(plan::take_slowly(fresh, 16), nullptr);
    EXPECT_EQ(in->rule->held_max, limit);
    in->rule->held -= 100 * plan::chunk_bytes;
}

INSTANTIATE_TEST_SUITE_P(of_each_kind, plan_instance, ::testing::Values(0U, 1U, 2U, 3U));

} // namespace
