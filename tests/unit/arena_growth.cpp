#include "../support/sources.hpp"

#include <mallard/arena.hpp>

#include <gtest/gtest.h>

namespace {

using namespace mallard::testing;
using mallard::arena;
using mallard::arena_options;
using mallard::growth;
using mallard::growth_state;
using mallard::ref;

constexpr std::size_t footer_bytes = 32;

/// The first steps of a rule, each taken for a request of one byte; 0 where the
/// limit refuses.
template <growth G>
std::vector<std::size_t> steps(std::size_t count, mallard::growth_function custom = nullptr)
{
    growth_state<G> state(custom);
    std::vector<std::size_t> taken(count);
    for (std::size_t& bytes : taken)
        if (bytes = state.step(1); bytes != 0)
            state.took(bytes);
    return taken;
}

using list = std::vector<std::size_t>;

TEST(growth, doubles_from_4_kib_to_1_mib)
{
    EXPECT_EQ(steps<growth{}>(11), (list{1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18,
                                         1 << 19, 1 << 20, 1 << 20, 1 << 20}));
}

TEST(growth, follows_its_rule)
{
    EXPECT_EQ(steps<growth::none(1000)>(3), (list{1000, 0, 0}));
    EXPECT_EQ(steps<growth::fixed(1000)>(3), (list{1000, 1000, 1000}));
    EXPECT_EQ((steps<growth::linear(1000, 10)>(3)), (list{1000, 1010, 1020}));
    EXPECT_EQ((steps<growth{.first = 1000, .num = 3, .den = 2}>(4)), (list{1000, 1500, 2250, 3375}));
    EXPECT_EQ((steps<growth{.first = 1000, .num = 2, .add = 5}>(3)), (list{1000, 2005, 4015}));
}

TEST(growth, clamps_a_step_to_its_maximum)
{
    EXPECT_EQ((steps<growth{.first = 1000, .max = 3000}>(4)), (list{1000, 2000, 3000, 3000}));
    EXPECT_EQ((steps<growth{.first = 5000, .max = 3000}>(2)), (list{3000, 3000}));
}

TEST(growth, clamps_the_last_step_to_its_limit)
{
    EXPECT_EQ((steps<growth{.first = 1000, .limit = 5500}>(4)), (list{1000, 2000, 2500, 0}));
    EXPECT_EQ((steps<growth{.first = 1000, .limit = 10}>(2)), (list{10, 0}));
    EXPECT_EQ((steps<growth{.first = 1000, .limit = 0}>(1)), (list{0}));
}

TEST(growth, survives_rules_that_make_no_sense)
{
    EXPECT_EQ((steps<growth{.first = 0}>(2)), (list{1, 1})) << "a request is served all the same";
    EXPECT_EQ((steps<growth{.first = 8, .num = 0, .add = 3}>(3)), (list{8, 3, 3}));
    EXPECT_EQ((steps<growth{.first = 8, .den = 0}>(2)), (list{8, 16}));
    EXPECT_EQ((steps<growth{.first = 8, .max = SIZE_MAX, .num = SIZE_MAX}>(3)),
              (list{8, SIZE_MAX - 8, 0})) << "saturates, and the limit holds";
}

TEST(growth, refuses_only_a_request_that_does_not_fit_into_the_limit_itself)
{
    growth_state<growth{.first = 1000, .limit = 1500}> state;
    state.took(state.step(1));
    EXPECT_EQ(state.step(500), 500u);
    EXPECT_EQ(state.step(501), 0u);
    state.gave(1000);
    EXPECT_EQ(state.step(1500), 1500u);
}

TEST(growth, keeps_its_limit_over_a_source_that_gives_more_than_asked)
{
    growth_state<growth{.first = 1000, .limit = 5000}> state;
    EXPECT_EQ(state.step(1), 1000u);
    state.took(4096);
    EXPECT_EQ(state.step(1), 904u);
    state.took(4096);
    EXPECT_EQ(state.step(1), 0u);
    EXPECT_FALSE(state.admits(1));
    state.gave(4096);
    EXPECT_NE(state.step(1), 0u);
}

TEST(growth, tells_a_custom_rule_the_last_step_and_the_request)
{
    static list told;
    told.clear();
    growth_state<growth{.max = 1000}> state([](std::size_t last, std::size_t asked) noexcept {
        told = {last, asked};
        return last + 300;
    });
    EXPECT_EQ(state.step(7), 300u);
    EXPECT_EQ(told, (list{0, 7}));
    state.took(300);
    EXPECT_EQ(state.step(8), 600u);
    EXPECT_EQ(told, (list{300, 8}));
}

TEST(growth, clamps_a_custom_rule_and_serves_the_request_it_forgets)
{
    EXPECT_EQ((steps<growth{.max = 1000, .limit = 1500}>(
                  3, [](std::size_t, std::size_t) noexcept { return SIZE_MAX; })),
              (list{1000, 500, 0}));
    EXPECT_EQ(steps<growth{}>(2, [](std::size_t, std::size_t) noexcept { return std::size_t{0}; }),
              (list{1, 1}));
}

TEST(arena_growth, asks_for_chunks_as_its_rule_says)
{
    counting_source heap;
    arena<ref<counting_source>> a(heap);
    while (heap.calls() < 10)
        std::ignore = a.allocate(100);
    for (std::size_t i = 0; i < 10; ++i)
        EXPECT_EQ(heap.asked()[i].bytes, std::size_t{4096} << std::min(i, std::size_t{8}));
}

TEST(arena_growth, gives_a_large_request_a_chunk_of_its_own_that_does_not_inflate_later_ones)
{
    counting_source heap;
    arena<ref<counting_source>> a(heap);
    auto* const small = static_cast<std::byte*>(a.allocate({16, 1}));
    std::ignore = a.allocate({1 << 24, 1});
    ASSERT_EQ(heap.calls(), 2u);
    EXPECT_EQ(heap.asked()[1].bytes, (std::size_t{1} << 24) + footer_bytes);
    EXPECT_EQ(a.allocate({16, 1}), small + 16) << "the chunk with more room stays current";
    while (heap.calls() < 3)
        std::ignore = a.allocate({16, 1});
    EXPECT_LE(heap.asked()[2].bytes, 16384u);
}

TEST(arena_growth, moves_on_to_the_chunk_with_more_room)
{
    counting_source heap;
    arena<ref<counting_source>> a(heap);
    std::ignore = a.allocate({4000, 1});
    auto* const block = static_cast<std::byte*>(a.allocate({4000, 1}));
    EXPECT_EQ(a.allocate({40, 1}), block + 4000);
    EXPECT_EQ(heap.calls(), 2u);
}

TEST(arena_growth, halves_a_step_that_its_source_refuses)
{
    failing_source source;
    source.fail_above(1500);
    arena<ref<failing_source>> a(source);
    ASSERT_NE(a.try_allocate({100, 1}), nullptr);
    EXPECT_EQ(source.asked().front().bytes, 4096u);
    EXPECT_EQ(source.asked().back().bytes, 1024u);
    EXPECT_EQ(a.try_allocate({1500, 1}), nullptr) << "with its footer it is above";
    ASSERT_NE(a.try_allocate({1400, 1}), nullptr) << "down to the request itself";
    EXPECT_EQ(source.asked().back().bytes, 1408 + footer_bytes);
}

TEST(arena_growth, works_in_a_source_that_holds_little_more_than_the_request)
{
    std::byte memory[4000];
    arena<mallard::borrowed> a(mallard::borrowed{std::span(memory)});
    std::size_t bytes = 0;
    while (a.try_allocate({10, 1}) != nullptr)
        bytes += 10;
    EXPECT_GE(bytes, 3700u);
}

TEST(arena_growth, holds_never_more_than_its_limit_and_all_of_it)
{
    counting_source heap;
    arena<ref<counting_source>, arena_options{.grow = {.first = 512, .limit = 10'000}}> a(heap);
    std::size_t bytes = 0;
    while (a.try_allocate({8, 1}) != nullptr)
        bytes += 8;
    EXPECT_EQ(heap.bytes(), 10'000u);
    EXPECT_GE(bytes, 10'000u - heap.live().size() * (footer_bytes + 16));
    EXPECT_THROW(std::ignore = a.allocate({8, 1}), std::bad_alloc);
    a.reset();
    EXPECT_NE(a.try_allocate({8, 1}), nullptr) << "what it holds serves again";
    a.release();
    EXPECT_NE(a.try_allocate({9000, 1}), nullptr) << "and what it gave back may be taken again";
}

TEST(arena_growth, of_none_is_one_chunk)
{
    counting_source heap;
    arena<ref<counting_source>, arena_options{.grow = growth::none(1024)}> a(heap);
    EXPECT_EQ(a.try_allocate({1024 - footer_bytes + 1, 1}), nullptr);
    EXPECT_NE(a.try_allocate({1024 - footer_bytes, 1}), nullptr);
    EXPECT_EQ(a.try_allocate({0, 1}), nullptr);
    EXPECT_EQ(heap.calls(), 1u);
}

TEST(arena_growth, may_be_a_function_given_to_the_constructor)
{
    counting_source heap;
    arena<ref<counting_source>> first([](std::size_t last, std::size_t) noexcept { return last + 128; },
                                      heap);
    std::ignore = first.allocate({1, 1});
    arena<ref<counting_source>> a = std::move(first);
    while (heap.calls() < 3)
        std::ignore = a.allocate({16, 1});
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_EQ(heap.asked()[i].bytes, 128 * (i + 1));
}

TEST(arena_growth, begins_anew_after_release)
{
    counting_source heap;
    arena<ref<counting_source>> a(heap);
    std::ignore = a.allocate({4096, 1});
    std::ignore = a.allocate({8192, 1});
    a.release();
    EXPECT_EQ(heap.bytes(), 0u);
    std::ignore = a.allocate({1, 1});
    EXPECT_EQ(heap.asked().back().bytes, 4096u);
    EXPECT_EQ(a.stats().growths, 3u);
}

} // namespace
