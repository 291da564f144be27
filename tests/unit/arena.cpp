#include "../support/asan.hpp"
#include "../support/sources.hpp"

#include <mallard/arena.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace {

using namespace mallard::testing;
using mallard::arena;
using mallard::arena_options;
using mallard::bytes_max;
using mallard::layout;
using mallard::null;
using mallard::ref;

using counted_arena = arena<ref<counting_source>>;

static_assert(mallard::rewindable<arena<>> && mallard::expanding<arena<>>);
static_assert(mallard::source<arena<>> && !mallard::chunk_source<arena<>>);
static_assert(!std::is_copy_constructible_v<arena<>> &&
              std::is_nothrow_move_constructible_v<arena<>>);
static_assert(!std::is_move_constructible_v<arena<mallard::buffer<64>>>);

constinit arena<> needs_no_code_to_start;

constexpr std::size_t absurd_sizes[] = {SIZE_MAX,       SIZE_MAX - 1,     SIZE_MAX - 4096,
                                        bytes_max + 1,  bytes_max,        bytes_max - 1,
                                        bytes_max - 31, bytes_max - 4095, bytes_max - 4096};

std::uintptr_t address(const void* p)
{
    return reinterpret_cast<std::uintptr_t>(p);
}

std::byte* bytes(void* p)
{
    return static_cast<std::byte*>(p);
}

template <std::size_t Bytes>
std::span<std::byte> part(std::byte (&memory)[Bytes], std::size_t offset, std::size_t count)
{
    return std::span<std::byte>(memory).subspan(offset, count);
}

TEST(arena, allocates_no_memory_before_the_first_block)
{
    EXPECT_EQ(needs_no_code_to_start.stats().bytes_taken, 0u);
    counting_source heap;
    counted_arena a(heap);
    a.reset();
    a.rewind(a.mark());
    a.trim();
    a.release();
    EXPECT_EQ(heap.calls(), 0u);
    EXPECT_NE(a.allocate(1), nullptr);
    EXPECT_EQ(heap.calls(), 1u);
}

TEST(arena, places_blocks_contiguously_at_rising_addresses)
{
    arena<mallard::default_heap, arena_options{.grow = {.first = 4096}}> a;
    std::byte* last = bytes(a.allocate({100, 1}));
    for (std::size_t size = 1; size < 60; ++size) {
        std::byte* const next = bytes(a.allocate({size, 1}));
        EXPECT_EQ(next, last + (size == 1 ? 100 : size - 1));
        last = next;
    }
}

TEST(arena, returns_a_distinct_address_for_each_zero_byte_block)
{
    std::byte memory[16];
    arena<null> a{std::span(memory)};
    for (std::byte& byte : memory)
        EXPECT_EQ(a.allocate({0, 1}), &byte);
    EXPECT_EQ(a.try_allocate({0, 1}), nullptr);
}

TEST(arena, honours_alignments_up_to_two_mebibytes)
{
    arena<> a;
    for (std::size_t align = 1; align <= std::size_t{1} << 21; align *= 2) {
        for (std::size_t const size : {std::size_t{1}, align - 1, align, align + 1}) {
            std::byte* const block = bytes(a.allocate({size, align}));
            EXPECT_EQ(address(block) % align, 0u);
            std::memset(block, 1, size);
        }
    }
}

TEST(arena, aligns_a_block_more_strictly_than_its_chunk)
{
    counting_source heap;
    counted_arena a(heap);
    std::ignore = a.allocate({1, 1});
    EXPECT_EQ(address(a.allocate({64, 512})) % 512, 0u);
    EXPECT_EQ(heap.calls(), 1u) << "there was room in the first chunk";
}

TEST(arena, requests_chunks_with_the_alignment_of_the_block_or_16)
{
    counting_source heap;
    counted_arena a(heap);
    std::ignore = a.allocate({8, 1});
    std::ignore = a.allocate({1 << 11, 1 << 16}); // larger than the first chunk of 1 KiB
    std::ignore = a.allocate({1 << 20, 8});
    ASSERT_EQ(heap.calls(), 3u);
    EXPECT_EQ(heap.asked()[0].align, 16u);
    EXPECT_EQ(heap.asked()[1].align, std::size_t{1} << 16);
    EXPECT_EQ(heap.asked()[2].align, 16u);
}

TEST(arena, fails_for_absurd_sizes_and_changes_nothing)
{
    counting_source heap;
    counted_arena a(heap);
    std::byte* const before = bytes(a.allocate({3, 1}));
    for (std::size_t const size : absurd_sizes) {
        for (std::size_t align = 1; align != 0; align *= 2) {
            EXPECT_EQ(a.try_allocate({size, align}), nullptr) << size << ' ' << align;
            EXPECT_THROW(std::ignore = a.allocate({size, align}), std::bad_alloc);
        }
        EXPECT_EQ(heap.asked().back().bytes >= size, true) << "the source gets the request";
    }
    EXPECT_EQ(a.allocate({1, 1}), before + 3);
    EXPECT_EQ(heap.live().size(), 1u);
}

TEST(arena, fails_for_absurd_alignments)
{
    counting_source heap;
    counted_arena a(heap);
    for (std::size_t align = std::size_t{1} << 33; align != 0; align *= 2) {
        EXPECT_EQ(a.try_allocate({1, align}), nullptr);
        EXPECT_EQ(a.try_allocate({0, align}), nullptr);
    }
    EXPECT_NE(a.try_allocate({1, 1}), nullptr);
    EXPECT_EQ(a.try_allocate({1, std::size_t{1} << 63}), nullptr);
}

TEST(arena, uses_every_byte_of_an_initial_buffer_before_its_source)
{
    alignas(16) std::byte memory[64];
    for (std::size_t offset = 0; offset < 17; ++offset) {
        for (std::size_t size = 0; size <= 40; ++size) {
            counting_source heap;
            counted_arena a(part(memory, offset, size), heap);
            for (std::size_t i = 0; i < size; ++i)
                ASSERT_EQ(a.allocate({1, 1}), memory + offset + i);
            EXPECT_EQ(heap.calls(), 0u);
            EXPECT_TRUE(heap.holds(a.allocate({1, 1})));
            a.release();
            EXPECT_TRUE(size == 0 || a.allocate({size, 1}) == memory + offset)
                << "it restarts there";
        }
    }
}

TEST(arena, fits_one_block_into_a_whole_unaligned_initial_buffer)
{
    alignas(16) std::byte memory[32];
    arena<null> a(part(memory, 1, 16));
    EXPECT_EQ(a.try_allocate({17, 1}), nullptr);
    EXPECT_EQ(a.try_allocate({16, 2}), nullptr);
    EXPECT_EQ(a.allocate({16, 1}), memory + 1);
    EXPECT_EQ(a.try_allocate({0, 1}), nullptr);
}

TEST(arena, never_returns_the_initial_buffer_to_its_source)
{
    std::byte memory[64] = {};
    {
        arena<null> a{std::span(memory)};
        std::ignore = a.allocate(8);
        EXPECT_TRUE(is_poisoned(memory + 40, true));
        arena<null> b = std::move(a);
        EXPECT_FALSE(is_poisoned(memory, false));
    }
    for (std::byte& byte : memory)
        EXPECT_FALSE(is_poisoned(&byte, false));
}

template <class Align>
class arena_of_min_align : public ::testing::Test {
public:
    static constexpr std::size_t min_align = Align::value;
    using arena_type = arena<ref<counting_source>,
                             arena_options{.grow = {.first = 4096}, .min_align = Align::value}>;
};

template <std::size_t Align>
using bytes_constant = std::integral_constant<std::size_t, Align>;
using min_aligns = ::testing::Types<bytes_constant<1>, bytes_constant<2>, bytes_constant<4>,
                                    bytes_constant<8>, bytes_constant<16>>;
TYPED_TEST_SUITE(arena_of_min_align, min_aligns);

TYPED_TEST(arena_of_min_align, places_blocks_at_multiples_of_min_align)
{
    counting_source heap;
    typename TestFixture::arena_type a(heap);
    for (std::size_t i = 0; i < 1000; ++i) {
        std::size_t const size = i * 7 % 61;
        std::size_t const align = std::size_t{1} << i % 6;
        std::byte* const block = bytes(a.allocate({size, align}));
        EXPECT_EQ(address(block) % std::max(align, TestFixture::min_align), 0u);
        std::byte* const next = bytes(a.allocate({8, 8}));
        EXPECT_FALSE(block <= next && next < block + size);
        ASSERT_TRUE(heap.holds(next + 7));
        std::memset(block, 1, size);
    }
}

TYPED_TEST(arena_of_min_align, stays_within_an_initial_buffer_of_any_size_and_alignment)
{
    alignas(16) std::byte memory[96];
    for (std::size_t offset = 0; offset < 17; ++offset) {
        for (std::size_t size = 0; size <= 70; ++size) {
            counting_source heap;
            typename TestFixture::arena_type a(part(memory, offset, size), heap);
            std::size_t used = 0;
            for (std::byte* block = bytes(a.allocate({5, 1})); !heap.holds(block);
                 block = bytes(a.allocate({5, 1})), ++used) {
                ASSERT_EQ(address(block) % TestFixture::min_align, 0u);
                ASSERT_TRUE(memory + offset <= block && block + 5 <= memory + offset + size);
            }
            // After the arena has moved on to a chunk, it does not use the rest of the buffer
            // again.
            for (std::size_t i = 0; i < 100; ++i)
                std::ignore = a.allocate({16, 16});
            EXPECT_EQ(heap.calls(), 1u) << offset << ' ' << size;
            std::size_t const unit = TestFixture::min_align;
            std::size_t const usable = size - std::min(size, -offset % unit);
            EXPECT_EQ(used, usable / unit * unit / mallard::align_up(5, unit));
        }
    }
}

TEST(arena, copies_text_with_zeros_and_empty_text)
{
    arena<> a;
    std::string text("with\0zero", 9);
    std::string_view const copy = a.copy(text);
    EXPECT_EQ(copy, text);
    text.assign(9, '-');
    EXPECT_EQ(copy, std::string_view("with\0zero", 9));

    std::string_view const empty = a.copy("");
    std::string_view const none = a.copy(std::string_view());
    EXPECT_TRUE(empty.empty() && none.empty());
    EXPECT_NE(empty.data(), none.data());
    EXPECT_NE(empty.data(), nullptr);
}

TEST(arena, makes_arrays_of_zero_initialised_values)
{
    counting_source heap; // the chunks of this source are not zeroed
    counted_arena a(heap);
    for (int const value : a.make_array<int>(1000))
        EXPECT_EQ(value, 0);
    EXPECT_TRUE(a.make_array<int>(0).empty());
    EXPECT_NE(a.make_array<int>(0).data(), a.make_array<int>(0).data());
}

TEST(arena, fails_for_arrays_larger_than_the_address_space)
{
    counting_source heap;
    counted_arena a(heap);
    for (std::size_t const count :
         {SIZE_MAX, SIZE_MAX / 8 + 1, SIZE_MAX / 8, bytes_max, bytes_max / 8})
        EXPECT_THROW(a.make_array<double>(count), std::bad_alloc) << count;
    EXPECT_EQ(heap.bytes(), 0u);
}

TEST(arena, try_make_returns_null_when_the_source_is_exhausted)
{
    std::byte memory[sizeof(int)];
    arena<null> a{std::span(memory)};
    using character = std::array<char, 4>;
    character* const first = a.try_make<character>(character{"abc"});
    ASSERT_NE(first, nullptr);
    EXPECT_STREQ(first->data(), "abc");
    EXPECT_EQ(a.try_make<character>(), nullptr);
    EXPECT_THROW(a.make<character>(), std::bad_alloc);
    EXPECT_THROW(a.copy("no room"), std::bad_alloc);
}

TEST(arena, propagates_the_exceptions_of_a_pmr_upstream_unchanged)
{
    failing_resource upstream;
    arena<mallard::pmr_source> a(&upstream);
    std::ignore = a.allocate(1);
    upstream.source.fail_from(1);
    try {
        std::ignore = a.allocate({100'000, 64});
        ADD_FAILURE() << "the source was exhausted";
    } catch (const refusal& said) {
        EXPECT_GE(said.bytes, 100'000u);
        EXPECT_EQ(said.align, 64u);
    }
    EXPECT_THROW(std::ignore = a.allocate(SIZE_MAX), refusal);
    EXPECT_EQ(a.try_allocate(SIZE_MAX), nullptr);
    EXPECT_EQ(a.try_allocate(100'000), nullptr);
    EXPECT_NE(a.try_allocate(100), nullptr) << "the first chunk still has room";
}

TEST(arena, changes_nothing_when_any_call_of_its_source_fails)
{
    for_each_refusal([](failing_source& source) {
        arena<ref<failing_source>, arena_options{.grow = mallard::growth::fixed(256)}> a(source);
        for (std::size_t i = 0; i < 40; ++i) {
            layout const l(i * 23 % 300, std::size_t{1} << i % 9);
            auto const before = a.stats();
            if (a.try_allocate(l) == nullptr) {
                EXPECT_EQ(a.stats().bytes_live, before.bytes_live);
                EXPECT_EQ(a.stats().bytes_taken, before.bytes_taken);
                EXPECT_NE(a.try_allocate(l), nullptr) << "a later call succeeds";
            }
        }
    });
}

} // namespace
