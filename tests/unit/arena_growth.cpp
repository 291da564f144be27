#include "../support/sources.hpp"

#include <mallard/arena.hpp>

#include <gtest/gtest.h>

namespace {

using namespace mallard::testing;
using mallard::arena;
using mallard::arena_options;
using mallard::chunk;
using mallard::growth;
using mallard::layout;
using mallard::ref;

constexpr std::size_t footer_bytes = 32;

/// A source over the heap that rounds chunks up to whole pages.
struct generous : counting_source {
    chunk try_take(layout l) noexcept
    {
        return counting_source::try_take({mallard::align_up(l.bytes, 4096), l.align});
    }
};

TEST(arena_growth, requests_chunks_by_its_growth_rule)
{
    counting_source heap;
    arena<ref<counting_source>> a(heap);
    while (heap.calls() < 10)
        std::ignore = a.allocate(100);
    for (std::size_t i = 0; i < 10; ++i)
        EXPECT_EQ(heap.asked()[i].bytes, std::size_t{1024} << std::min(2 * i, std::size_t{14}));
}

TEST(arena_growth, requests_a_chunk_for_a_large_block_without_enlarging_later_chunks)
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
    EXPECT_LE(heap.asked()[2].bytes, 65536u);
}

TEST(arena_growth, keeps_allocating_from_the_chunk_with_more_free_bytes)
{
    counting_source heap;
    arena<ref<counting_source>> a(heap);
    std::ignore = a.allocate({4000, 1});
    auto* const block = static_cast<std::byte*>(a.allocate({4000, 1}));
    EXPECT_EQ(a.allocate({40, 1}), block + 4000);
    EXPECT_EQ(heap.calls(), 2u);
}

TEST(arena_growth, requests_half_as_much_when_its_source_fails)
{
    failing_source source;
    source.fail_above(1500);
    arena<ref<failing_source>, arena_options{.grow = {.first = 4096}}> a(source);
    ASSERT_NE(a.try_allocate({100, 1}), nullptr);
    EXPECT_EQ(source.asked().front().bytes, 4096u);
    EXPECT_EQ(source.asked().back().bytes, 1024u);
    EXPECT_EQ(a.try_allocate({1500, 1}), nullptr) << "with its footer it is above";
    ASSERT_NE(a.try_allocate({1400, 1}), nullptr) << "down to the request itself";
    EXPECT_EQ(source.asked().back().bytes, 1408 + footer_bytes);
}

TEST(arena_growth, succeeds_when_the_source_has_little_more_than_the_request)
{
    std::byte memory[4000];
    arena<mallard::borrowed> a(mallard::borrowed{std::span(memory)});
    std::size_t bytes = 0;
    while (a.try_allocate({10, 1}) != nullptr)
        bytes += 10;
    EXPECT_GE(bytes, 3700u);
}

TEST(arena_growth, uses_its_whole_limit_and_never_exceeds_it)
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
    EXPECT_NE(a.try_allocate({8, 1}), nullptr) << "memory that it holds is reused";
    a.release();
    EXPECT_NE(a.try_allocate({9000, 1}), nullptr) << "memory that it gave back may be taken again";
}

TEST(arena_growth, can_allocate_trimmed_memory_again_up_to_its_limit)
{
    arena<mallard::default_heap, arena_options{.grow = {.first = 512, .limit = 10'000}}> a;
    for (int i = 0; i < 10; ++i) {
        EXPECT_NE(a.try_allocate({9000, 1}), nullptr);
        a.rewind({});
        a.trim();
        EXPECT_EQ(a.stats().bytes_taken, 0U);
    }
}

TEST(arena_growth, respects_its_limit_if_the_source_returns_more_than_requested)
{
    generous heap;
    arena<ref<generous>, arena_options{.grow = {.first = 1000, .limit = 10'000}}> a(heap);
    for (int i = 0; i < 1000; ++i)
        std::ignore = a.try_allocate({100, 1});
    EXPECT_EQ(heap.bytes(), 3 * 4096u) << "exceeds the limit by less than a page, once";
}

TEST(arena_growth, requests_only_one_chunk_with_growth_none)
{
    counting_source heap;
    arena<ref<counting_source>, arena_options{.grow = growth::none(1024)}> a(heap);
    EXPECT_EQ(a.try_allocate({1024 - footer_bytes + 1, 1}), nullptr);
    EXPECT_NE(a.try_allocate({1024 - footer_bytes, 1}), nullptr);
    EXPECT_EQ(a.try_allocate({0, 1}), nullptr);
    EXPECT_EQ(heap.calls(), 1u);
}

TEST(arena_growth, can_be_a_function_given_to_the_constructor)
{
    counting_source heap;
    arena<ref<counting_source>> first(
        [](std::size_t last, std::size_t) noexcept { return last + 128; }, heap);
    std::ignore = first.allocate({1, 1});
    arena<ref<counting_source>> a = std::move(first);
    while (heap.calls() < 3)
        std::ignore = a.allocate({16, 1});
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_EQ(heap.asked()[i].bytes, 128 * (i + 1));
}

TEST(arena_growth, is_kept_by_an_arena_that_was_moved_from)
{
    counting_source heap;
    arena<ref<counting_source>> from(
        [](std::size_t, std::size_t) noexcept { return std::size_t{12'345}; }, heap);
    std::ignore = from.allocate(1);
    arena<ref<counting_source>> const to(std::move(from));
    EXPECT_EQ(from.stats(), mallard::statistics{});
    std::ignore = from.allocate(1);
    EXPECT_EQ(heap.asked().back().bytes, 12'345u);
    EXPECT_EQ(to.stats().growths, 1u);
}

TEST(arena_growth, restarts_at_the_first_chunk_size_after_release)
{
    counting_source heap;
    arena<ref<counting_source>> a(heap);
    std::ignore = a.allocate({4096, 1});
    std::ignore = a.allocate({8192, 1});
    a.release();
    EXPECT_EQ(heap.bytes(), 0u);
    std::ignore = a.allocate({1, 1});
    EXPECT_EQ(heap.asked().back().bytes, 1024u);
    EXPECT_EQ(a.stats().growths, 3u);
}

} // namespace
