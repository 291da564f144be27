#include "../support/sources.hpp"

#include <mallard/adapt/failing.hpp>
#include <mallard/adapt/limited.hpp>
#include <mallard/allocator.hpp>
#include <mallard/fixed_pool.hpp>
#include <mallard/pmr.hpp>

#include <gtest/gtest.h>

#include <array>
#include <list>

namespace {

using namespace mallard::testing;
using mallard::adapt_if;
using mallard::allocator;
using mallard::arena;
using mallard::block_allocator;
using mallard::budget;
using mallard::call_counts;
using mallard::chunk;
using mallard::chunk_source;
using mallard::counted;
using mallard::counting_scope;
using mallard::default_heap;
using mallard::failing;
using mallard::failures;
using mallard::layout;
using mallard::limited;
using mallard::multipool;
using mallard::pmr_resource;
using mallard::pool;
using mallard::pool_options;
using mallard::ref;
using mallard::resettable;
using mallard::sync;

// --- properties of all adaptors

static_assert(block_allocator<counted<arena<>>> && resettable<counted<arena<>>>);
static_assert(!chunk_source<counted<arena<>>> && !mallard::expanding<counted<arena<>>>);
static_assert(chunk_source<counted<default_heap>> && !block_allocator<counted<default_heap>>);
static_assert(block_allocator<ref<arena<>>> && chunk_source<ref<arena<>>>);
static_assert(!resettable<ref<arena<>>> && !block_allocator<ref<default_heap>>);
static_assert(mallard::owning<counted<limited<pool<>>>> && !mallard::owning<ref<default_heap>>);
static_assert(mallard::shareable<counted<default_heap, sync::lock_free>>);
static_assert(!mallard::shareable<counted<default_heap>>);
static_assert(std::is_same_v<adapt_if<false, counted<arena<>>>, arena<>>);
static_assert(std::is_same_v<adapt_if<true, counted<arena<>>>, counted<arena<>>>);
static_assert(!std::is_copy_constructible_v<counted<ref<default_heap>>>);
static_assert(std::is_nothrow_move_constructible_v<counted<default_heap>>);

constinit counted<mallard::fixed_pool<64, 4>> ready_at_compile_time;

TEST(adaptor, accepts_the_same_arguments_when_it_is_disabled)
{
    auto on = mallard::adapted<adapt_if<true, counted<pool<>>>>(48u);
    auto off = mallard::adapted<adapt_if<false, counted<pool<>>>>(48u);
    EXPECT_EQ(on.upstream().block_bytes(), 48u);
    EXPECT_EQ(off.block_bytes(), 48u);
    void* const block = ready_at_compile_time.allocate({64, 8});
    EXPECT_TRUE(ready_at_compile_time.owns(block));
    ready_at_compile_time.deallocate(block, {64, 8});
}

template <class Memory>
void use_as_a_pool()
{
    auto nodes = mallard::adapted<Memory>(48u);
    void* const block = nodes.allocate();
    void* const other = nodes.try_allocate();
    EXPECT_NE(block, other);
    std::array<void*, 10> many{};
    nodes.allocate_batch(many);
    ASSERT_TRUE(nodes.try_allocate_batch(std::span(many).first(0)));
    EXPECT_EQ(nodes.stats().blocks_live, 12u);
    nodes.deallocate_batch(many);
    nodes.deallocate(block);
    nodes.deallocate(other);
    EXPECT_EQ(nodes.block_bytes(), 48u);
    EXPECT_EQ(nodes.block_align(), 16u);
    EXPECT_EQ(nodes.stats().blocks_live, 0u);
}

TEST(adaptor, has_the_functions_of_a_pool_whether_it_is_enabled_or_disabled)
{
    use_as_a_pool<adapt_if<false, counted<pool<>>>>();
    use_as_a_pool<adapt_if<true, counted<pool<>>>>();
    counted<pool<>> nodes(std::in_place, 48u);
    std::array<void*, 10> many{};
    nodes.allocate_batch(many);
    EXPECT_EQ(nodes.counts().blocks_live(), 10);
    nodes.deallocate_batch(many);
    counted<limited<pool<>>> few(std::in_place, budget{100}, std::in_place, 48u);
    EXPECT_FALSE(few.try_allocate_batch(many));
    EXPECT_THROW(few.allocate_batch(many), std::bad_alloc);
    EXPECT_EQ(few.stats().blocks_live, 0u);
    few.deallocate(few.allocate());
}

TEST(adaptor, can_be_used_by_containers_as_a_type_parameter_or_through_pmr)
{
    pmr_resource<counted<multipool<>>> memory;
    {
        std::list<int, allocator<int, pmr_resource<counted<multipool<>>>>> typed({1, 2}, memory);
        std::pmr::list<int> pmr({1, 2}, &memory);
        EXPECT_EQ(memory.counts().blocks_live(), 4);
    }
    EXPECT_TRUE(memory.counts().is_balanced());
}

TEST(adaptor, can_be_the_source_of_pools_arenas_and_multipools)
{
    counting_source heap;
    counted<ref<counting_source>> counts(std::in_place, heap);
    {
        pool<ref<decltype(counts)>> blocks(48, 0, counts);
        multipool<ref<decltype(counts)>> many(ref{counts});
        arena<ref<decltype(counts)>> scratch(ref{counts});
        EXPECT_NE(blocks.allocate(), nullptr);
        EXPECT_NE(many.allocate(layout{48}), nullptr);
        EXPECT_NE(many.allocate(layout{100000}), nullptr);
        EXPECT_NE(scratch.allocate(layout{48}), nullptr);
        EXPECT_EQ(counts.counts().bytes_live(), static_cast<std::ptrdiff_t>(heap.bytes()));
        EXPECT_EQ(counts.counts().allocations, heap.calls());
    }
    EXPECT_EQ(counts.counts().frees, heap.gives());
    EXPECT_EQ(counts.counts().bytes_peak, heap.bytes_peak());
}

TEST(adaptor, works_after_the_pool_that_uses_it_is_moved)
{
    pool<counted<default_heap>> first(48);
    EXPECT_NE(first.allocate(), nullptr);
    pool<counted<default_heap>> second = std::move(first);
    EXPECT_EQ(first.upstream().counts(), call_counts{});
    EXPECT_GT(second.upstream().counts().blocks_live(), 0);
    second.release();
    EXPECT_TRUE(second.upstream().counts().is_balanced());
}

// --- counted

TEST(counted, counts_calls_bytes_and_peaks)
{
    counted<multipool<>> memory;
    void* const first = memory.allocate({10, 1});
    void* const second = memory.try_allocate({20, 1});
    memory.deallocate(first, {10, 1});
    void* const third = memory.allocate({1, 1});
    call_counts const c = memory.counts();
    EXPECT_EQ(c.allocations, 3u);
    EXPECT_EQ(c.frees, 1u);
    EXPECT_EQ(c.failures, 0u);
    EXPECT_EQ(c.bytes_allocated, 31u);
    EXPECT_EQ(c.bytes_freed, 10u);
    EXPECT_EQ(c.blocks_live(), 2);
    EXPECT_EQ(c.bytes_live(), 21);
    EXPECT_EQ(c.blocks_peak, 2u);
    EXPECT_EQ(c.bytes_peak, 30u);
    EXPECT_FALSE(c.is_balanced());
    memory.deallocate(second, {20, 1});
    memory.deallocate(third, {1, 1});
    EXPECT_TRUE(memory.counts().is_balanced());
}

TEST(counted, counts_a_failed_call_as_one_failure_and_no_allocation)
{
    counted<arena<mallard::null>> memory;
    EXPECT_EQ(memory.try_allocate({10, 1}), nullptr);
    EXPECT_THROW(static_cast<void>(memory.allocate({10, 1})), std::bad_alloc);
    EXPECT_EQ(memory.counts(), call_counts{.failures = 2});
    counted<mallard::pmr_source> in_its_own_words(std::in_place, std::pmr::null_memory_resource());
    EXPECT_THROW(static_cast<void>(in_its_own_words.take({10, 1})), std::bad_alloc);
    EXPECT_EQ(in_its_own_words.counts().failures, 1u);
}

TEST(counted, counts_the_bytes_that_a_source_returned_not_the_requested_bytes)
{
    counted<generous_source> source;
    chunk const c = source.try_take({24, 8});
    EXPECT_EQ(source.counts().bytes_live(), 1024);
    source.give(c);
    EXPECT_TRUE(source.counts().is_balanced());
}

TEST(counted, counts_a_reset_or_release_as_a_free_of_all_blocks)
{
    counted<arena<>> scratch;
    for (int i = 0; i < 3; ++i)
        static_cast<void>(scratch.allocate({100, 1}));
    scratch.reset();
    EXPECT_EQ(scratch.counts().frees, 3u);
    EXPECT_TRUE(scratch.counts().is_balanced());
    static_cast<void>(scratch.allocate({7, 1}));
    scratch.release();
    scratch.trim();
    EXPECT_TRUE(scratch.counts().is_balanced());
    EXPECT_EQ(scratch.counts().bytes_peak, 300u);
}

template <class Counted>
class any_counted : public ::testing::Test {};
using all_counted = ::testing::Types<counted<multipool<>>, counted<multipool<>, sync::lock_free>>;
TYPED_TEST_SUITE(any_counted, all_counted);

TYPED_TEST(any_counted, counts_nested_scopes_separately)
{
    TypeParam memory;
    void* const before = memory.allocate({1000, 1});
    void* const peak = memory.allocate({5000, 1});
    memory.deallocate(peak, {5000, 1});
    {
        counting_scope outer(memory);
        EXPECT_EQ(outer.counts(), call_counts{});
        void* const a = memory.allocate({10, 1});
        {
            counting_scope inner(memory);
            void* const b = memory.allocate({30, 1});
            memory.deallocate(b, {30, 1});
            memory.deallocate(a, {10, 1});
            EXPECT_EQ(inner.counts().allocations, 1u);
            EXPECT_EQ(inner.counts().blocks_live(), -1) << "frees older blocks";
            EXPECT_EQ(inner.counts().bytes_live(), -10);
            EXPECT_EQ(inner.counts().bytes_peak, 30u) << "counts from the start of the scope";
        }
        EXPECT_EQ(outer.counts().allocations, 2u);
        EXPECT_TRUE(outer.counts().is_balanced());
        EXPECT_EQ(outer.counts().bytes_peak, 40u) << "includes the inner scope";
        EXPECT_EQ(outer.counts().blocks_peak, 2u);
    }
    EXPECT_EQ(memory.counts().bytes_peak, 6000u) << "as if there had been no scope";
    memory.deallocate(before, {1000, 1});
}

// --- limited

template <class Limited>
class any_limited : public ::testing::Test {};
using strict = multipool<counting_source>; // rejects requests larger than the address space
using all_limited = ::testing::Types<limited<strict>, limited<strict, sync::lock_free>>;
TYPED_TEST_SUITE(any_limited, all_limited);

TYPED_TEST(any_limited, allocates_up_to_the_last_byte_of_its_budget)
{
    TypeParam memory({.bytes = 100});
    EXPECT_STREQ(memory.last_failure(), "");
    void* const most = memory.allocate({99, 1});
    EXPECT_EQ(memory.try_allocate({2, 1}), nullptr);
    EXPECT_EQ(std::string(memory.last_failure()).find("the budget has too few bytes left"), 0u);
    EXPECT_THROW(static_cast<void>(memory.allocate({SIZE_MAX, 1})), std::bad_alloc);
    void* const last = memory.allocate({1, 1});
    EXPECT_EQ(memory.bytes_left(), 0u);
    memory.deallocate(most, {99, 1});
    EXPECT_EQ(memory.bytes_left(), 99u) << "freed bytes can be allocated again";
    memory.deallocate(last, {1, 1});
    EXPECT_EQ(memory.bytes_left(), memory.most().bytes);
}

TYPED_TEST(any_limited, allocates_up_to_the_last_block_of_its_budget)
{
    TypeParam memory({.blocks = 2});
    static_cast<void>(memory.allocate({8, 1}));
    void* const last = memory.allocate({8, 1});
    EXPECT_EQ(memory.try_allocate({0, 1}), nullptr);
    EXPECT_EQ(std::string(memory.last_failure()).find("the block budget"), 0u);
    memory.deallocate(last, {8, 1});
    EXPECT_EQ(memory.blocks_left(), 1u);
    memory.reset();
    EXPECT_EQ(memory.blocks_left(), 2u);
}

TYPED_TEST(any_limited, charges_nothing_when_the_wrapped_allocator_fails)
{
    TypeParam memory({.bytes = SIZE_MAX, .blocks = 3});
    EXPECT_EQ(memory.try_allocate({mallard::bytes_max, 1}), nullptr);
    EXPECT_EQ(std::string(memory.last_failure()).find("the wrapped allocator is exhausted"), 0u);
    EXPECT_THROW(static_cast<void>(memory.allocate({mallard::bytes_max, 1})), std::bad_alloc);
    EXPECT_EQ(memory.bytes_left(), SIZE_MAX);
    EXPECT_EQ(memory.blocks_left(), 3u);
}

TEST(limited, charges_bytes_that_a_source_returns_beyond_the_request)
{
    limited<generous_source> source({.bytes = 1500});
    EXPECT_EQ(source.try_take({501, 1}).data, nullptr);
    EXPECT_EQ(std::string(source.last_failure()).find("the source returned more"), 0u);
    EXPECT_EQ(source.bytes_left(), 1500u);
    chunk const c = source.try_take({500, 1});
    EXPECT_EQ(source.bytes_left(), 0u);
    source.give(c);
    EXPECT_EQ(source.bytes_left(), 1500u);
}

TEST(limited, lets_an_arena_use_its_whole_budget)
{
    limited<default_heap> source({.bytes = 100'000});
    arena<ref<limited<default_heap>>> scratch(ref{source});
    while (scratch.try_allocate({16, 16}) != nullptr) {}
    EXPECT_LT(source.bytes_left(), 64u) << "the last step is cut to the rest of the budget";
    EXPECT_EQ(scratch.stats().growths, 5u) << "1, 4, 16, 64 KiB and the rest";
}

TEST(limited, reports_no_more_than_the_wrapped_source_has)
{
    limited<limited<default_heap>> source({.bytes = 100}, std::in_place, budget{.bytes = 10});
    EXPECT_EQ(source.most_to_take(), 10u);
    EXPECT_EQ(source.bytes_left(), 100u);
    EXPECT_EQ(source.try_take({11, 1}).data, nullptr);
}

TEST(limited, has_its_whole_budget_again_after_it_was_moved_from)
{
    limited<arena<>> first({.bytes = 100});
    static_cast<void>(first.allocate({40, 1}));
    limited<arena<>> second = std::move(first);
    EXPECT_EQ(first.bytes_left(), 100u);
    EXPECT_EQ(second.bytes_left(), 60u);
}

// --- failing

TEST(failures, can_be_one_call_several_calls_or_calls_at_intervals)
{
    auto const of = [](failures rule) {
        std::vector<std::size_t> all;
        for (std::size_t n = 0; n < 12; ++n)
            if (rule({1, 1}, n))
                all.push_back(n);
        return all;
    };
    using numbers = std::vector<std::size_t>;
    EXPECT_EQ(of({}), numbers{});
    EXPECT_EQ(of({.first = 3}), numbers{3});
    EXPECT_EQ(of({.first = 3, .count = 2}), (numbers{3, 4}));
    EXPECT_EQ(of({.first = 2, .count = 2, .every = 5}), (numbers{2, 3, 7, 8}));
    EXPECT_EQ(of({.first = 10, .count = failures::never}), (numbers{10, 11}));
}

TEST(failing, fails_calls_with_given_numbers_without_the_wrapped_allocator)
{
    failing<counted<multipool<>>> memory({.first = 1, .count = 2});
    EXPECT_NE(memory.allocate({8, 1}), nullptr);
    EXPECT_EQ(memory.try_allocate({8, 1}), nullptr);
    EXPECT_THROW(static_cast<void>(memory.allocate({8, 1})), std::bad_alloc);
    EXPECT_NE(memory.try_allocate({8, 1}), nullptr);
    EXPECT_EQ(memory.calls(), 4u);
    EXPECT_EQ(memory.failed(), 2u);
    EXPECT_EQ(
        memory.counts(),
        (call_counts{.allocations = 2, .bytes_allocated = 16, .blocks_peak = 2, .bytes_peak = 16}));
    memory.restart();
    memory.rule() = {};
    EXPECT_NE(memory.try_allocate({8, 1}), nullptr);
    EXPECT_EQ(memory.calls(), 1u);
    memory.release();
}

TEST(failing, fails_calls_selected_by_a_function_of_their_layout)
{
    auto const large = [](layout l, std::size_t) noexcept { return l.bytes > 100; };
    failing<default_heap, decltype(large)> source(large);
    EXPECT_EQ(source.try_take({101, 1}).data, nullptr);
    chunk const c = source.take({100, 1});
    source.give(c);
}

} // namespace
