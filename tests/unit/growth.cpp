#include "../support/sources.hpp"

#include <mallard/arena.hpp>
#include <mallard/growth.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>

#include <gtest/gtest.h>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

/// Returns the bytes of the chunk requests of a growth rule for small requests, until the limit.
template <growth G>
std::vector<std::size_t> steps(std::size_t count, growth_function custom = nullptr)
{
    growth_state<G> state(custom);
    std::vector<std::size_t> made;
    while (made.size() < count) {
        std::size_t const step = state.step(8);
        made.push_back(step);
        if (step == 0)
            break;
        state.took(step);
    }
    return made;
}
using list = std::vector<std::size_t>;

/// Returns the usable bytes of a chunk request. Here all bytes are usable.
constexpr auto all_of_it = [](std::size_t bytes) { return bytes; };
constexpr auto whole_pages = [](std::size_t bytes) { return bytes / 4096 * 4096; };

TEST(growth, doubles_from_4_kib_to_1_mib_by_default)
{
    EXPECT_EQ(steps<growth{}>(10),
              (list{4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 1048576}));
}

TEST(growth, growth_none_requests_one_chunk)
{
    EXPECT_EQ(steps<growth::none(1000)>(5), (list{1000, 0}));
    EXPECT_TRUE(growth::none(1000).is_single());
    EXPECT_TRUE((growth{.first = 10, .limit = 5}.is_single()));
    EXPECT_FALSE(growth{}.is_single());
    EXPECT_FALSE(growth::fixed(1000).is_single());
}

TEST(growth, growth_fixed_repeats_the_same_chunk_size)
{
    EXPECT_EQ(steps<growth::fixed(1000)>(4), (list{1000, 1000, 1000, 1000}));
}

TEST(growth, linear_adds_the_same_amount_each_time_up_to_the_maximum)
{
    EXPECT_EQ((steps<growth::linear(100, 50)>(4)), (list{100, 150, 200, 250}));
    EXPECT_EQ((steps<growth{.first = 100, .max = 220, .num = 1, .add = 50}>(5)),
              (list{100, 150, 200, 220, 220}));
}

TEST(growth, by_a_fraction_rounds_down)
{
    EXPECT_EQ((steps<growth{.first = 100, .num = 3, .den = 2}>(4)), (list{100, 150, 225, 337}));
}

TEST(growth, reduces_the_last_step_to_the_rest_of_the_limit)
{
    EXPECT_EQ((steps<growth{.first = 1000, .limit = 3500}>(5)), (list{1000, 2000, 500, 0}));
}

TEST(growth, allows_any_request_that_fits_in_the_rest_of_the_limit)
{
    growth_state<growth{.first = 1000, .limit = 3500}> state;
    EXPECT_EQ(state.step(3501), 0U);
    EXPECT_EQ(state.step(3500), 3500U);
    state.took(state.step(1));
    EXPECT_EQ(state.step(2501), 0U);
    EXPECT_EQ(state.step(2500), 2500U);
    EXPECT_EQ(state.step(most), 0U);
}

TEST(growth, is_not_enlarged_by_one_large_request)
{
    growth_state<growth{}> state;
    state.took(state.step(10));
    EXPECT_EQ(state.step(13U << 20), 13U << 20);
    state.took(13U << 20);
    EXPECT_EQ(state.step(10), 16384U);
}

TEST(growth, continues_from_a_step_that_the_source_made_smaller)
{
    growth_state<growth{}> state;
    state.took(1000);
    EXPECT_EQ(state.step(10), 2000U);
}

TEST(growth, accepts_absurdly_large_numbers)
{
    EXPECT_EQ((steps<growth{.first = most, .max = most, .num = most, .add = most}>(2)),
              (list{most, 0}));
    EXPECT_EQ((steps<growth{.first = 0, .max = 0}>(3)), (list{8, 8, 8}));
    EXPECT_EQ((steps<growth{.first = 100, .num = 0}>(3)), (list{100, 8, 100}));
    EXPECT_EQ((steps<growth{.first = 100, .num = 1, .den = 0}>(3)), (list{100, 100, 100}));
    EXPECT_EQ((steps<growth{.first = 100, .limit = 0}>(1)), (list{0}));
    EXPECT_EQ((steps<growth{.first = 100, .limit = 7}>(1)), (list{0}));
}

TEST(growth, a_custom_growth_rule_gets_the_last_step_and_the_request_and_its_result_is_clamped)
{
    growth_function const custom = [](std::size_t last, std::size_t asked) noexcept {
        return last == 0 ? asked * 10 : last + 1;
    };
    EXPECT_EQ((steps<growth{}>(4, custom)), (list{80, 81, 82, 83}));
    EXPECT_EQ((steps<growth{.max = 81, .limit = 300}>(5, custom)), (list{80, 81, 81, 58, 0}));
}

TEST(growth, by_a_custom_rule_may_return_zero_or_the_maximum)
{
    growth_function const nothing = [](std::size_t, std::size_t) noexcept {
        return std::size_t{0};
    };
    EXPECT_EQ((steps<growth{}>(3, nothing)), (list{8, 8, 8}));
    growth_function const everything = [](std::size_t, std::size_t) noexcept { return most; };
    EXPECT_EQ((steps<growth{}>(2, everything)), (list{1 << 20, 1 << 20}));
    EXPECT_EQ((steps<growth{.max = most}>(2, everything)), (list{most, 0}));
}

TEST(growth, starts_again_when_all_memory_is_returned_and_keeps_its_step_count)
{
    growth_state<growth{}> state;
    state.took(state.step(1));
    state.took(state.step(1));
    EXPECT_EQ(state.taken(), 4096U + 8192U);
    state.gave(4096);
    EXPECT_EQ(state.taken(), 8192U);
    state.restart();
    EXPECT_EQ(state.taken(), 0U);
    EXPECT_EQ(state.step(1), 4096U);
    EXPECT_EQ(state.steps(), 2U);
}

TEST(growth, halves_a_step_that_the_source_cannot_supply_down_to_the_request)
{
    for (std::size_t const largest : {65536, 5000, 4096, 1000, 100}) {
        failing_source source;
        source.fail_above(largest);
        growth_state<growth::fixed(65536)> state;
        chunk const taken = take_step<false>(source, state, {100, 16}, 100, all_of_it);
        ASSERT_NE(taken.data, nullptr) << largest;
        EXPECT_LE(taken.bytes, largest);
        EXPECT_GE(taken.bytes, 100U);
        EXPECT_GT(taken.bytes * 2, largest == 100 ? 100 : largest);
        EXPECT_EQ(state.taken(), taken.bytes);
        source.give(taken);
    }
}

TEST(growth, requests_whole_units_after_any_number_of_halvings)
{
    failing_source source;
    source.fail_above(30000);
    growth_state<growth::fixed(65536)> state;
    chunk const taken = take_step<false>(source, state, {4096, 4096}, 4096, whole_pages);
    EXPECT_EQ(taken.bytes, 16384U);
    for (layout const asked : source.asked()) {
        EXPECT_EQ(asked.bytes % 4096, 0U);
        EXPECT_EQ(asked.align, 4096U);
    }
    source.give(taken);
}

TEST(growth, rounds_a_request_down_to_usable_bytes_and_doubles_the_unrounded_step)
{
    failing_source source;
    growth_state<growth{.first = 10'000}> state;
    chunk const first = take_step<false>(source, state, {100, 16}, 100, whole_pages);
    chunk const second = take_step<false>(source, state, {100, 16}, 100, whole_pages);
    EXPECT_EQ(first.bytes, 8192U);
    EXPECT_EQ(second.bytes, 16384U) << "of 20,000";
    EXPECT_EQ(state.taken(), 8192U + 16384U);
    source.give(first);
    source.give(second);
}

TEST(growth, requests_at_most_the_preferred_bytes_and_at_least_the_required_ones)
{
    failing_source source;
    growth_state<growth{.first = 1000, .limit = 20'000}> state;
    chunk const wished = take_step<false>(source, state, {100, 16}, 12'000, all_of_it);
    EXPECT_EQ(wished.bytes, 12'000U);
    source.fail_above(5000);
    chunk const halved = take_step<false>(source, state, {100, 16}, 8000, all_of_it);
    EXPECT_EQ(halved.bytes, 4000U);
    source.give(wished);
    source.give(halved);
}

TEST(growth, does_not_count_failed_steps)
{
    failing_source source;
    source.fail_from(1);
    growth_state<growth{}> state;
    EXPECT_EQ(take_step<false>(source, state, {100, 8}, 100, all_of_it).data, nullptr);
    EXPECT_THROW(take_step<true>(source, state, {100, 8}, 100, all_of_it), std::bad_alloc);
    EXPECT_EQ(state.taken(), 0U);
    EXPECT_EQ(state.steps(), 0U);

    growth_state<growth{.limit = 50}> limited;
    std::size_t const calls = source.calls();
    EXPECT_EQ(take_step<false>(source, limited, {100, 8}, 100, all_of_it).data, nullptr);
    EXPECT_THROW(take_step<true>(source, limited, {100, 8}, 100, all_of_it), std::bad_alloc);
    EXPECT_EQ(source.calls(), calls) << "the limit refuses, not the source";
}

TEST(growth, is_the_same_at_compile_time_and_at_run_time)
{
    constexpr growth rule{.first = 100, .max = 1000, .num = 3, .den = 2, .add = 7, .limit = 5000};
    growth_state<rule> early;
    growth_state<growth::at_run_time()> late(rule);
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(early.step(50), late.step(50));
        early.took(early.step(50));
        late.took(late.step(50));
    }
    EXPECT_EQ(late.limit(), rule.limit);
    EXPECT_EQ(late.anew().step(1), rule.first);
}

TEST(growth, chosen_at_run_time_limits_every_allocator)
{
    growth const rule = growth::none(32768);
    pool<default_heap, pool_options{.grow = growth::at_run_time()}> blocks(64, 0, {}, rule);
    std::size_t count = 0;
    while (blocks.try_allocate() != nullptr)
        ++count;
    EXPECT_GT(count, 32768 / 64 * 3 / 4);
    EXPECT_LT(count, 32768 / 64);

    arena<default_heap, arena_options{.grow = growth::at_run_time()}> bytes(rule);
    while (bytes.try_allocate({100, 1}) != nullptr) {}
    EXPECT_LE(bytes.stats().bytes_taken, 32768U);

    multipool<default_heap, multipool_options{.grow = growth::at_run_time()}> sizes({}, rule);
    while (sizes.try_allocate({100, 1}) != nullptr) {}
    EXPECT_LE(sizes.stats().bytes_taken, 32768U + 2048) << "and the eight pools themselves";
}

} // namespace
