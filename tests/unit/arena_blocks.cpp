#include "../support/asan.hpp"
#include "../support/sources.hpp"

#include <mallard/arena.hpp>

#include <gtest/gtest.h>

namespace {

using namespace mallard::testing;
using mallard::arena;
using mallard::arena_options;
using mallard::null;
using mallard::ref;

using counted_arena = arena<ref<counting_source>>;

std::byte* bytes(void* p)
{
    return static_cast<std::byte*>(p);
}

TEST(arena_deallocate, frees_the_last_block)
{
    arena<> a;
    std::byte* const first = bytes(a.allocate({10, 1}));
    std::byte* const second = bytes(a.allocate({20, 1}));
    a.deallocate(second, {20, 1});
    a.deallocate(first, {10, 1});
    EXPECT_EQ(a.allocate({30, 1}), first);
}

TEST(arena_deallocate, does_nothing_for_a_block_that_is_not_the_last)
{
    arena<> a;
    std::byte* const first = bytes(a.allocate({10, 1}));
    std::byte* const second = bytes(a.allocate({20, 1}));
    a.deallocate(first, {10, 1});
    EXPECT_EQ(a.allocate({1, 1}), second + 20);
}

TEST(arena_deallocate, frees_a_last_block_of_zero_bytes)
{
    arena<null, arena_options{.min_align = 8}> a;
    alignas(8) std::byte memory[16];
    a = arena<null, arena_options{.min_align = 8}>{std::span(memory)};
    void* const block = a.allocate({0, 1});
    a.deallocate(block, {0, 1});
    EXPECT_EQ(a.allocate({0, 1}), block);
    EXPECT_EQ(a.allocate({0, 1}), memory + 8);
}

TEST(arena_expand, grows_and_shrinks_the_last_block_in_place)
{
    arena<mallard::default_heap, mallard::arena_options{.grow = {.first = 4096}}> a;
    std::byte* const block = bytes(a.allocate({8, 1}));
    std::memset(block, 7, 8);
    ASSERT_TRUE(a.try_expand(block, {8, 1}, {3000, 1}));
    EXPECT_EQ(block[7], std::byte{7});
    block[2999] = std::byte{9};
    EXPECT_EQ(a.allocate({1, 1}), block + 3000);
    a.deallocate(block + 3000, {1, 1});
    ASSERT_TRUE(a.try_expand(block, {3000, 1}, {3, 1}));
    EXPECT_EQ(a.allocate({1, 1}), block + 3);
}

TEST(arena_expand, grows_to_the_last_byte_of_the_chunk_and_no_further)
{
    std::byte memory[64];
    arena<null> a{std::span(memory)};
    void* const block = a.allocate({1, 1});
    EXPECT_FALSE(a.try_expand(block, {1, 1}, {65, 1}));
    EXPECT_FALSE(a.try_expand(block, {1, 1}, {SIZE_MAX, 1}));
    EXPECT_FALSE(a.try_expand(block, {1, 1}, {mallard::bytes_max, 1}));
    EXPECT_TRUE(a.try_expand(block, {1, 1}, {64, 1}));
    EXPECT_EQ(a.try_allocate({0, 1}), nullptr);
}

TEST(arena_expand, fails_to_grow_a_block_that_is_not_the_last)
{
    arena<> a;
    void* const first = a.allocate({8, 8});
    void* const second = a.allocate({8, 8});
    EXPECT_FALSE(a.try_expand(first, {8, 8}, {9, 8}));
    EXPECT_TRUE(a.try_expand(first, {8, 8}, {8, 8}));
    EXPECT_TRUE(a.try_expand(first, {8, 8}, {1, 8})) << "a smaller size fits in place";
    EXPECT_EQ(a.allocate({8, 8}), bytes(second) + 8) << "nothing has moved";
}

TEST(arena_expand, fails_for_a_stricter_alignment)
{
    arena<> a;
    void* const block = a.allocate({8, 64});
    EXPECT_FALSE(a.try_expand(block, {8, 64}, {8, 128}));
    EXPECT_FALSE(a.try_expand(block, {8, 64}, {9, 128}));
    EXPECT_TRUE(a.try_expand(block, {8, 64}, {9, 32}));
}

TEST(arena_expand, grows_zero_bytes_to_one_and_shrinks_back)
{
    arena<> a;
    std::byte* const block = bytes(a.allocate({0, 1}));
    ASSERT_TRUE(a.try_expand(block, {0, 1}, {1, 1}));
    *block = std::byte{1};
    ASSERT_TRUE(a.try_expand(block, {1, 1}, {0, 1}));
    EXPECT_EQ(a.allocate({1, 1}), block + 1);
}

TEST(arena_poison, covers_exactly_the_free_bytes)
{
    counting_source heap;
    counted_arena a(heap);
    std::byte* const kept = bytes(a.allocate({16, 16}));
    auto const mark = a.mark();
    std::byte* const near = bytes(a.allocate({16, 16}));
    std::byte* const far = bytes(a.allocate({1 << 16, 16}));
    EXPECT_TRUE(is_poisoned(near + 16, true)) << "not allocated yet";
    EXPECT_FALSE(is_poisoned(far + (1 << 16) - 1, false));
    a.rewind(mark);
    EXPECT_FALSE(is_poisoned(kept + 15, false));
    EXPECT_TRUE(is_poisoned(near, true));
    EXPECT_TRUE(is_poisoned(far, true));
    a.deallocate(kept, {16, 16});
    EXPECT_TRUE(is_poisoned(kept, true));
    std::byte* const again = bytes(a.allocate({12, 16}));
    EXPECT_FALSE(is_poisoned(again + 11, false));
    EXPECT_TRUE(is_poisoned(again + 12, true));
    EXPECT_TRUE(a.try_expand(again, {12, 16}, {24, 16}));
    EXPECT_FALSE(is_poisoned(again + 23, false));
    EXPECT_TRUE(a.try_expand(again, {24, 16}, {5, 16}));
    EXPECT_FALSE(is_poisoned(again + 4, false));
    EXPECT_TRUE(is_poisoned(again + 5, true));
    a.reset();
    EXPECT_TRUE(is_poisoned(again, true));
}

} // namespace
