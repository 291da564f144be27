// Tests that mallard::pmr::arena meets the requirements on std::pmr::monotonic_buffer_resource.
#include "../support/sources.hpp"

#include <mallard/pmr.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace mallard::testing;
using mallard::pmr::arena;

class monotonic : public ::testing::Test {
public:
    failing_resource upstream;
    failing_source& calls = upstream.source;

    static std::byte* allocate(std::pmr::memory_resource& r, std::size_t bytes,
                               std::size_t align = alignof(std::max_align_t))
    {
        return static_cast<std::byte*>(r.allocate(bytes, align));
    }
};

TEST_F(monotonic, places_blocks_of_n_bytes_exactly_n_bytes_apart)
{
    arena r(&upstream);
    for (std::size_t const bytes : {1u, 2u, 3u, 7u, 16u, 31u, 100u}) {
        std::byte* last = allocate(r, bytes, 1);
        for (int i = 0; i < 5; ++i) {
            std::byte* const next = allocate(r, bytes, 1);
            EXPECT_EQ(next, last + bytes);
            last = next;
        }
    }
}

TEST_F(monotonic, pads_for_alignment_as_little_as_possible)
{
    alignas(64) std::byte memory[256];
    arena r(std::span<std::byte>(memory), &upstream);
    EXPECT_EQ(allocate(r, 1, 1), memory);
    EXPECT_EQ(allocate(r, 1, 2), memory + 2);
    EXPECT_EQ(allocate(r, 1, 1), memory + 3);
    EXPECT_EQ(allocate(r, 1, 64), memory + 64);
    EXPECT_EQ(allocate(r, 0, 1), memory + 65);
    EXPECT_EQ(allocate(r, 0, 1), memory + 66);
}

TEST_F(monotonic, uses_its_initial_buffer_to_the_last_byte_before_upstream)
{
    for (std::size_t size = 0; size <= 100; ++size) {
        std::byte memory[101];
        arena r(std::span<std::byte>(memory + 1, size), &upstream);
        std::size_t const before = calls.calls();
        if (size != 0) {
            EXPECT_EQ(allocate(r, size, 1), memory + 1);
        }
        EXPECT_EQ(calls.calls(), before);
        EXPECT_TRUE(calls.holds(r.allocate(1, 1)));
        EXPECT_EQ(calls.calls(), before + 1);
    }
}

TEST_F(monotonic, uses_an_underaligned_buffer)
{
    alignas(16) std::byte memory[32];
    arena r(std::span<std::byte>(memory + 1, 16), &upstream);
    EXPECT_EQ(allocate(r, 16, 1), memory + 1);
    EXPECT_TRUE(calls.holds(allocate(r, 17, 1)));

    arena second(std::span<std::byte>(memory + 1, 16), &upstream);
    EXPECT_TRUE(calls.holds(allocate(second, 16, 2))) << "aligned, it would not fit";
}

TEST_F(monotonic, does_nothing_in_deallocate)
{
    arena r(&upstream);
    std::byte* const first = allocate(r, 100, 1);
    static_cast<std::pmr::memory_resource&>(r).deallocate(first, 100, 1);
    EXPECT_EQ(allocate(r, 100, 1), first + 100);
    for (int i = 0; i < 1000; ++i) {
        std::pmr::memory_resource& base = r;
        base.deallocate(allocate(r, 100), 100);
    }
    EXPECT_EQ(calls.gives(), 0u);
}

TEST_F(monotonic, restarts_at_the_initial_buffer_after_release)
{
    std::byte memory[64];
    arena r(std::span<std::byte>(memory), &upstream);
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(allocate(r, 64, 1), memory);
        std::ignore = allocate(r, 10'000);
        EXPECT_NE(calls.bytes(), 0u);
        r.release();
        EXPECT_EQ(calls.bytes(), 0u);
    }
    EXPECT_EQ(r.upstream_resource(), &upstream);
}

TEST_F(monotonic, grows_geometrically)
{
    arena r(&upstream);
    for (int i = 0; i < 1 << 15; ++i)
        std::ignore = allocate(r, 16);
    EXPECT_LE(calls.calls(), 9u) << "for 512 KiB";
    for (std::size_t i = 1; i < calls.calls(); ++i)
        EXPECT_GE(calls.asked()[i].bytes, calls.asked()[i - 1].bytes * 3 / 2);
}

TEST_F(monotonic, requests_a_first_chunk_of_the_given_size)
{
    for (std::size_t const size : {1u, 8u, 100u, 1000u, 1024u, 100'000u, 40'000'000u}) {
        arena r(size, &upstream);
        std::size_t const before = calls.calls();
        std::ignore = allocate(r, 1, 1);
        std::ignore = allocate(r, size - 1, 1);
        EXPECT_EQ(calls.calls(), before + 1) << size;
    }
}

TEST_F(monotonic, requests_chunks_larger_than_its_initial_buffer)
{
    for (std::size_t const size : {100u, 65'536u, 20'000'000u}) {
        std::vector<std::byte> buffer(size);
        arena r(buffer.data(), size, &upstream);
        for (int round = 0; round < 2; ++round) {
            std::size_t const before = calls.calls();
            EXPECT_EQ(allocate(r, size, 1), buffer.data());
            EXPECT_EQ(calls.calls(), before);
            std::ignore = allocate(r, 1, 1);
            EXPECT_GT(calls.asked().back().bytes, size);
            std::ignore = allocate(r, size / 2, 1);
            EXPECT_EQ(calls.calls(), before + 1);
            r.release();
        }
    }
}

TEST_F(monotonic, has_the_standard_constructors_which_allocate_no_memory)
{
    std::byte buffer[64];
    EXPECT_EQ(arena(&upstream).upstream_resource(), &upstream);
    EXPECT_EQ(arena(100, &upstream).upstream_resource(), &upstream);
    EXPECT_EQ(arena(buffer, 64, &upstream).upstream_resource(), &upstream);
    std::pmr::set_default_resource(&upstream);
    arena const usual, sized(100), buffered(buffer, 64);
    std::pmr::set_default_resource(nullptr);
    EXPECT_EQ(usual.upstream_resource(), &upstream);
    EXPECT_EQ(sized.upstream_resource(), &upstream);
    EXPECT_EQ(buffered.upstream_resource(), &upstream);
    EXPECT_EQ(calls.calls(), 0u);
    static_assert(!std::is_convertible_v<std::size_t, arena>);
    static_assert(!std::is_convertible_v<std::pmr::memory_resource*, arena>);
}

TEST_F(monotonic, can_be_a_base_class)
{
    struct derived : arena {
        using arena::arena;
    };
    derived r(100, &upstream);
    std::ignore = allocate(r, 10);
    EXPECT_NE(calls.bytes(), 0u);
    r.release();
    EXPECT_EQ(calls.bytes(), 0u);
    EXPECT_EQ(derived().upstream_resource(), std::pmr::get_default_resource());
}

TEST_F(monotonic, requests_a_chunk_as_large_as_a_large_block_needs)
{
    arena r(&upstream);
    std::byte* const block = allocate(r, 5'000'000, 64);
    EXPECT_GE(calls.asked().back().bytes, 5'000'000u);
    EXPECT_EQ(calls.asked().back().align, 64u);
    std::memset(block, 1, 5'000'000);
}

TEST_F(monotonic, keeps_its_current_buffer_when_upstream_throws)
{
    arena r(&upstream);
    std::byte* const first = allocate(r, 16, 1);
    calls.fail_from(1);
    EXPECT_THROW(std::ignore = allocate(r, 100'000), refusal);
    EXPECT_EQ(allocate(r, 16, 1), first + 16);
    calls.fail_never();
    EXPECT_TRUE(calls.holds(allocate(r, 100'000)));
    EXPECT_EQ(allocate(r, 16, 1), first + 32) << "and when it recovers";
}

} // namespace
