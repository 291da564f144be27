#include "../support/sources.hpp"

#include <mallard/arena.hpp>

#include <gtest/gtest.h>

#include <optional>

namespace {

using namespace mallard::testing;
using mallard::arena;
using mallard::arena_options;
using mallard::ref;
using mallard::statistics;

using counted_arena = arena<ref<counting_source>>;

std::byte* bytes(void* p)
{
    return static_cast<std::byte*>(p);
}

TEST(arena_rewind, frees_blocks_after_the_mark_and_none_before_it)
{
    arena<> a;
    std::byte* const kept = bytes(a.allocate({40, 8}));
    std::memset(kept, 1, 40);
    auto const mark = a.mark();
    void* const block = a.allocate({100, 64});
    a.rewind(mark);
    EXPECT_EQ(a.allocate({100, 64}), block);
    EXPECT_EQ(kept[39], std::byte{1});
}

TEST(arena_rewind, crosses_chunks_and_keeps_them)
{
    counting_source heap;
    counted_arena a(heap);
    std::byte* const kept = bytes(a.allocate({10, 1}));
    auto const mark = a.mark();
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 100; ++i)
            std::memset(a.allocate({1000, 1}), 2, 1000);
        a.rewind(mark);
        EXPECT_EQ(a.stats().bytes_live, 10u);
        EXPECT_EQ(a.allocate({1, 1}), kept + 10);
        a.rewind(mark);
    }
    EXPECT_EQ(heap.gives(), 0u);
    std::size_t const calls = heap.calls();
    for (int i = 0; i < 50; ++i)
        std::ignore = a.allocate({1000, 1});
    EXPECT_EQ(heap.calls(), calls) << "idle chunks come before new ones";
}

TEST(arena_rewind, crosses_large_chunks_in_between)
{
    counting_source heap;
    counted_arena a(heap);
    std::byte* const first = bytes(a.allocate({10, 1}));
    auto const outer = a.mark();
    std::memset(a.allocate({1 << 20, 1}), 1, 1 << 20); // the cursor stays in the smaller chunk
    auto const inner = a.mark();
    EXPECT_EQ(a.allocate({10, 1}), first + 10);
    std::ignore = a.allocate({1 << 21, 1});
    a.rewind(inner);
    EXPECT_EQ(a.allocate({10, 1}), first + 10);
    a.rewind(outer);
    EXPECT_EQ(a.allocate({10, 1}), first + 10);
    EXPECT_EQ(a.stats().bytes_live, 20u);
}

TEST(arena_rewind, a_rewind_to_a_mark_of_the_empty_arena_frees_all_blocks)
{
    counting_source heap;
    counted_arena a(heap);
    auto const empty = a.mark();
    for (int i = 0; i < 10; ++i)
        std::ignore = a.allocate(4000);
    std::size_t const calls = heap.calls();
    a.rewind(empty);
    EXPECT_EQ(a.stats().bytes_live, 0u);
    for (int i = 0; i < 10; ++i)
        std::ignore = a.allocate(4000);
    EXPECT_EQ(heap.calls(), calls);
}

TEST(arena_rewind, a_rewind_makes_the_initial_buffer_available_again)
{
    std::byte memory[64];
    counting_source heap;
    counted_arena a(memory, heap);
    std::ignore = a.allocate({10, 1});
    auto const mark = a.mark();
    for (int i = 0; i < 100; ++i)
        std::ignore = a.allocate({100, 1});
    a.rewind(mark);
    EXPECT_EQ(a.allocate({54, 1}), memory + 10);
}

TEST(arena_rewind, works_after_a_block_older_than_the_mark_was_freed)
{
    arena<ref<counting_source>, arena_options{.checks = mallard::check::on}>::mark_type mark;
    counting_source heap;
    arena<ref<counting_source>, arena_options{.checks = mallard::check::on}> a(heap);
    void* const block = a.allocate({10, 1});
    mark = a.mark();
    a.deallocate(block, {10, 1});
    a.rewind(mark); // the mark is not stale, because there was no rewind before
    EXPECT_NE(a.allocate({1, 1}), nullptr);
}

TEST(arena_scope, rewinds_at_the_end_of_the_scope_after_an_exception_too)
{
    arena<> a;
    void* const first = a.allocate(8);
    void* inner = nullptr;
    for (int i = 0; i < 3; ++i) {
        mallard::scope outer(a);
        inner = a.allocate(8);
        try {
            mallard::scope nested(a);
            for (int k = 0; k < 1000; ++k)
                std::ignore = a.allocate(100);
            throw i;
        } catch (int) {
        }
        EXPECT_EQ(a.allocate(8), bytes(inner) + 8 + 8);
    }
    EXPECT_EQ(a.allocate(8), inner);
    EXPECT_EQ(inner, bytes(first) + 16);
}

void fill_one_round(counted_arena& a)
{
    for (std::size_t i = 0; i < 2000; ++i)
        std::memset(a.allocate({i % 90, 1}), 1, i % 90);
}

TEST(arena_reset, keeps_the_memory_for_a_second_round)
{
    counting_source heap;
    counted_arena a(heap);
    fill_one_round(a);
    std::size_t const calls = heap.calls();
    for (int round = 0; round < 5; ++round) {
        a.reset();
        EXPECT_EQ(a.stats().bytes_live, 0u);
        fill_one_round(a);
    }
    EXPECT_EQ(heap.calls(), calls);
    EXPECT_EQ(heap.gives(), 0u);
}

TEST(arena_reset, allocates_no_more_memory_in_later_rounds_with_large_blocks)
{
    counting_source heap;
    counted_arena a(heap);
    auto const round = [&] {
        for (std::size_t const size : {100u, 60'000u, 2000u, 3000u, 200'000u, 9000u, 500u, 60'000u})
            std::ignore = a.allocate({size, 1});
        a.reset();
    };
    for (int i = 0; i < 4; ++i)
        round();
    std::size_t const calls = heap.calls();
    for (int i = 0; i < 20; ++i)
        round();
    EXPECT_EQ(heap.calls(), calls);
}

TEST(arena_reset, makes_the_next_block_start_in_the_newest_chunk_or_initial_buffer)
{
    counting_source heap;
    counted_arena a(heap);
    while (heap.calls() < 4)
        std::ignore = a.allocate(1000);
    a.reset();
    std::size_t const calls = heap.calls();
    auto* const first = bytes(a.allocate({1, 1}));
    EXPECT_EQ(a.allocate({30'000, 1}), first + 1) << "there is room for it";
    EXPECT_EQ(heap.calls(), calls);

    std::byte memory[8];
    counted_arena b(memory, heap);
    std::ignore = b.allocate(100);
    b.reset();
    EXPECT_EQ(b.allocate({8, 1}), memory);
}

TEST(arena_release, returns_all_memory_to_the_source)
{
    counting_source heap;
    counted_arena a(heap);
    for (int round = 0; round < 3; ++round) {
        fill_one_round(a);
        auto const mark = a.mark();
        fill_one_round(a);
        a.rewind(mark);
        a.release();
        EXPECT_EQ(heap.bytes(), 0u);
        EXPECT_EQ(a.stats().bytes_taken, 0u);
        EXPECT_EQ(a.stats().chunks, 0u);
    }
}

TEST(arena_release, makes_the_whole_initial_buffer_usable_again)
{
    arena<mallard::buffer<1 << 16>> a;
    auto const fill = [&] {
        std::size_t count = 0;
        while (a.try_allocate({100, 4}) != nullptr)
            ++count;
        return count;
    };
    std::size_t const first = fill();
    EXPECT_GT(first, 600u);
    for (int round = 0; round < 3; ++round) {
        a.release();
        auto const mark = a.mark();
        EXPECT_EQ(fill(), first);
        a.rewind(mark);
        EXPECT_EQ(fill(), first);
    }
}

TEST(arena_trim, returns_idle_chunks_oldest_first)
{
    counting_source heap;
    counted_arena a(heap);
    while (heap.calls() < 6) // chunks of 1, 4, 16, 64, 256 and 1024 KiB
        std::ignore = a.allocate(900);
    a.reset();
    EXPECT_EQ(heap.bytes(), 1365u << 10);
    a.trim(1000 << 10);
    EXPECT_EQ(heap.bytes(), 1365u << 10) << "341 KiB are idle, beside the current chunk";
    a.trim(320 << 10);
    EXPECT_EQ(heap.bytes(), (1024u + 256 + 64) << 10);
    a.trim(300 << 10);
    EXPECT_EQ(heap.bytes(), (1024u + 256) << 10);
    a.trim();
    EXPECT_EQ(heap.bytes(), 1024u << 10);
}

TEST(arena_trim, returns_the_oldest_chunks_first_after_a_rewind_too)
{
    counting_source heap;
    counted_arena a(heap);
    std::ignore = a.allocate(900);
    auto const mark = a.mark();
    while (heap.calls() < 6)
        std::ignore = a.allocate(900);
    a.rewind(mark);
    a.trim(1024 << 10);
    EXPECT_EQ(heap.bytes(), (1u + 1024) << 10);
}

TEST(arena_trim, keeps_used_chunks)
{
    counting_source heap;
    counted_arena a(heap);
    fill_one_round(a);
    std::size_t const held = heap.bytes();
    a.trim();
    EXPECT_EQ(heap.bytes(), held);
}

TEST(arena_move, moves_all_blocks_and_leaves_an_empty_arena)
{
    std::byte memory[32];
    counting_source heap;
    int destroyed = 0;
    std::optional<counted_arena> target;
    {
        counted_arena a(memory, heap);
        a.defer([&] { ++destroyed; });
        std::ignore = a.allocate({32, 1});
        auto const mark = a.mark();
        std::ignore = a.allocate({5000, 1});
        std::byte* const block = bytes(a.allocate({10, 1}));
        target.emplace(std::move(a));
        EXPECT_EQ(target->allocate({1, 1}), block + 10);
        target->rewind(mark);
        EXPECT_EQ(a.stats().bytes_taken, 0u);
        EXPECT_NE(a.allocate(1), nullptr) << "growth starts again";
    }
    EXPECT_EQ(destroyed, 0);
    *target = counted_arena(heap);
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(heap.bytes(), 0u);
    counted_arena& same = *target;
    std::ignore = same.allocate(1);
    *target = std::move(same);
    EXPECT_EQ(target->stats().chunks, 1u) << "self-assignment changes nothing";
}

TEST(arena_stats, are_consistent_with_each_other)
{
    std::byte memory[100];
    counting_source heap;
    counted_arena a(memory, heap);
    statistics s = a.stats();
    EXPECT_EQ(s.bytes_idle, 100u);
    EXPECT_EQ(s.bytes_live, 0u);
    std::ignore = a.allocate({30, 1});
    s = a.stats();
    EXPECT_EQ(s.bytes_idle, 70u);
    EXPECT_EQ(s.bytes_live, 30u);
    std::ignore = a.allocate({900, 1});
    s = a.stats();
    EXPECT_EQ(s.chunks, 1u);
    EXPECT_EQ(s.growths, 1u);
    EXPECT_EQ(s.bytes_taken, 1024u);
    EXPECT_EQ(s.bytes_live, 1000u) << "unused bytes of a full chunk count as live";
    EXPECT_EQ(s.bytes_live + s.bytes_idle + 32, 100u + 1024);
    a.reset();
    s = a.stats();
    EXPECT_EQ(s.bytes_live, 0u);
    EXPECT_EQ(s.bytes_idle + 32, 100u + 1024);
}

} // namespace
