#include "../support/sources.hpp"

#include <mallard/arena.hpp>
#include <mallard/pool.hpp>

#include <gtest/gtest.h>

// By default, the sanitizers abort when memory is exhausted, instead of returning null.
extern "C" const char* __asan_default_options()
{
    return "allocator_may_return_null=1";
}
extern "C" [[gnu::no_sanitize_thread]] const char* __tsan_default_options()
{
    return "allocator_may_return_null=1";
}

namespace {

using namespace mallard::testing;
using mallard::borrowed;
using mallard::buffer;
using mallard::bytes_max;
using mallard::chunk;
using mallard::default_heap;
using mallard::layout;
using mallard::null;
using mallard::pmr_source;
using mallard::ref;

static_assert(mallard::chunk_source<default_heap> && mallard::chunk_source<null>);
static_assert(mallard::chunk_source<borrowed> && mallard::chunk_source<buffer<64>>);
static_assert(mallard::chunk_source<pmr_source> && mallard::chunk_source<ref<null>>);
static_assert(mallard::source<mallard::arena<>> && mallard::source<mallard::pool<>>);
static_assert(!mallard::source<int> && !mallard::source<std::pmr::memory_resource>);
static_assert(std::is_empty_v<default_heap> && std::is_empty_v<null>);
static_assert(sizeof(ref<null>) == sizeof(void*));
static_assert(!std::is_copy_constructible_v<buffer<64>> &&
              !std::is_move_constructible_v<buffer<64>>);
static_assert(!std::is_copy_constructible_v<borrowed>);

constinit buffer<64> needs_no_code_to_start;

template <class Source>
class any_source : public ::testing::Test {
public:
    Source source;
};

struct borrowing : borrowed {
    borrowing() : borrowed(std::span(memory())) {}
    static std::span<std::byte, 1 << 16> memory()
    {
        alignas(16) static std::byte bytes[1 << 16];
        return bytes;
    }
};

struct over_pmr : pmr_source {
    over_pmr() : pmr_source(&upstream()) {}
    static failing_resource& upstream()
    {
        static failing_resource resource;
        return resource;
    }
};

using sources = ::testing::Types<default_heap, borrowing, buffer<1 << 16>, over_pmr>;
TYPED_TEST_SUITE(any_source, sources);

TYPED_TEST(any_source, returns_chunks_as_requested_without_overlap)
{
    std::vector<chunk> chunks;
    for (std::size_t align = 1; align <= 4096; align *= 2) {
        chunk const c = this->source.try_take({align + 3, align});
        ASSERT_NE(c.data, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(c.data) % align, 0u);
        EXPECT_GE(c.bytes, align + 3);
        std::memset(c.data, static_cast<int>(chunks.size()), c.bytes);
        chunks.push_back(c);
    }
    for (std::size_t i = chunks.size(); i-- > 0;) {
        auto const* const first = static_cast<std::byte*>(chunks[i].data);
        for (std::size_t k = 0; k < chunks[i].bytes; ++k)
            ASSERT_EQ(first[k], static_cast<std::byte>(i));
        this->source.give(chunks[i]);
    }
}

TYPED_TEST(any_source, fails_for_impossible_sizes_and_still_works)
{
    for (std::size_t const bytes :
         {SIZE_MAX, SIZE_MAX - 63, bytes_max + 1, bytes_max, bytes_max - 4096})
        for (std::size_t const align : {1u, 16u, 64u, 4096u})
            EXPECT_EQ(this->source.try_take({bytes, align}).data, nullptr) << bytes << ' ' << align;
    EXPECT_EQ(this->source.try_take({1, std::size_t{1} << 46}).data, nullptr);
    chunk const c = this->source.try_take({100, 8});
    ASSERT_NE(c.data, nullptr);
    this->source.give(c);
}

TEST(default_heap, throws_bad_alloc_when_it_is_exhausted)
{
    default_heap heap;
    EXPECT_THROW(mallard::take(heap, SIZE_MAX), std::bad_alloc);
}

TEST(null, is_always_exhausted)
{
    null none;
    EXPECT_EQ(none.try_take({0, 1}).data, nullptr);
    EXPECT_THROW(mallard::take(none, {0, 1}), std::bad_alloc);
}

template <class Source>
void use_to_the_last_byte(Source& source, std::size_t bytes)
{
    chunk const first = source.try_take({1, 1});
    chunk const rest = source.try_take({bytes - 1, 1});
    ASSERT_NE(rest.data, nullptr);
    EXPECT_EQ(source.try_take({1, 1}).data, nullptr);
    source.give(rest);
    EXPECT_EQ(source.try_take({bytes, 1}).data, nullptr);
    source.give(first);
    chunk const all = source.try_take({bytes, 1});
    EXPECT_EQ(all.data, first.data) << "the last taken goes back first, and all is there again";
    source.give(all);
}

TEST(borrowed, can_supply_all_its_bytes_at_any_alignment)
{
    alignas(16) std::byte memory[64];
    for (std::size_t offset = 0; offset < 17; ++offset) {
        borrowed source(std::span(memory + offset, 40));
        use_to_the_last_byte(source, 40);
    }
}

TEST(buffer, can_supply_all_its_bytes)
{
    buffer<40> source;
    use_to_the_last_byte(source, 40);
    use_to_the_last_byte(needs_no_code_to_start, 64);
    buffer<1> tiny;
    chunk const c = tiny.try_take({1, 1});
    EXPECT_NE(c.data, nullptr);
    EXPECT_EQ(tiny.try_take({1, 1}).data, nullptr);
}

TEST(buffer, is_aligned_for_anything)
{
    struct {
        char before;
        buffer<64> source;
    } holder{};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(holder.source.try_take({1, 1}).data) % 16, 0u);
}

template <class Source>
void give_in_any_order(Source& source, std::size_t bytes)
{
    for (std::size_t const first : {0u, 1u, 2u}) {
        chunk chunks[3];
        for (chunk& c : chunks)
            c = source.try_take({bytes / 4, 8});
        for (std::size_t i = 0; i < 3; ++i)
            source.give(chunks[(first + i) % 3]);
        chunk const all = source.try_take({bytes, 1});
        ASSERT_NE(all.data, nullptr) << "first " << first;
        source.give(all);
    }
}

TEST(borrowed, has_all_its_bytes_again_when_all_chunks_are_freed_in_any_order)
{
    alignas(16) std::byte memory[256];
    borrowed source{std::span(memory)};
    give_in_any_order(source, 256);
}

TEST(buffer, has_all_its_bytes_again_when_all_chunks_are_freed_in_any_order)
{
    buffer<256> source;
    give_in_any_order(source, 256);
}

TEST(borrowed, is_empty_after_it_was_moved_from)
{
    std::byte memory[8];
    borrowed first{std::span(memory)};
    borrowed second = std::move(first);
    EXPECT_EQ(first.try_take({1, 1}).data, nullptr);
    first = std::move(second);
    EXPECT_EQ(first.try_take({8, 1}).data, memory);
    EXPECT_EQ(borrowed().try_take({1, 1}).data, nullptr);
}

TEST(pmr_source, frees_chunks_with_the_requested_layout)
{
    failing_resource upstream; // verifies each deallocate
    pmr_source source(&upstream);
    EXPECT_EQ(source.resource(), &upstream);
    chunk const c = source.take({100, 64});
    EXPECT_EQ(upstream.source.asked().back(), layout(100, 64));
    source.give(c);
}

TEST(pmr_source, propagates_the_exceptions_of_its_upstream)
{
    failing_resource upstream;
    pmr_source source(&upstream);
    upstream.source.fail_from(1);
    EXPECT_THROW(source.take({100, 64}), refusal);
    EXPECT_THROW(mallard::take(source, {100, 64}), refusal);
    EXPECT_EQ(source.try_take({100, 64}).data, nullptr);
}

TEST(pmr_source, uses_the_default_resource_at_its_construction)
{
    failing_resource upstream;
    auto* const before = std::pmr::set_default_resource(&upstream);
    pmr_source const source;
    std::pmr::set_default_resource(before);
    EXPECT_EQ(source.resource(), &upstream);
    EXPECT_EQ(pmr_source().resource(), before);
}

TEST(ref, forwards_all_calls)
{
    failing_resource upstream;
    pmr_source source(&upstream);
    ref borrowed_twice{source};
    give(borrowed_twice, take(borrowed_twice, {10, 2}));
    EXPECT_EQ(upstream.source.asked().back(), layout(10, 2));
    upstream.source.fail_from(1);
    EXPECT_THROW(take(borrowed_twice, {10, 2}), refusal) << "with its exception";
    EXPECT_EQ(borrowed_twice.try_take({10, 2}).data, nullptr);
}

TEST(source, can_be_another_allocator)
{
    mallard::arena<> a;
    ref source{a};
    chunk const first = source.try_take({10, 1});
    EXPECT_EQ(first.bytes, 10u);
    source.give(first);
    EXPECT_EQ(source.take({10, 1}).data, first.data) << "an arena takes its last block back";
}

TEST(refuse_absurd, returns_a_chunk_to_a_source_that_grants_an_impossible_request)
{
    failing_source generous;
    EXPECT_EQ(mallard::refuse_absurd<false>(generous, {64, 8}).data, nullptr);
    EXPECT_THROW(mallard::refuse_absurd<true>(generous, {64, 8}), std::bad_alloc);
    EXPECT_EQ(generous.gives(), 2u);
}

} // namespace
