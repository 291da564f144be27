#include <mallard/detail/base/bits.hpp>

#include <gtest/gtest.h>

#include <stdexcept>

namespace {

using mallard::align_up;
using mallard::bytes_max;
using mallard::is_power_of_two;
using mallard::layout;
using mallard::layout_of;
using mallard::saturating_add;
using mallard::saturating_mul;

constexpr std::size_t top = std::size_t{1} << 63;

TEST(bits, recognise_powers_of_two)
{
    EXPECT_FALSE(is_power_of_two(0));
    EXPECT_FALSE(is_power_of_two(SIZE_MAX));
    for (std::size_t power = 1; power != 0; power *= 2) {
        EXPECT_TRUE(is_power_of_two(power));
        EXPECT_TRUE(power < 4 || !is_power_of_two(power - 1));
        EXPECT_TRUE(power < 2 || power == top || !is_power_of_two(power + 1));
    }
}

TEST(bits, round_up_to_the_next_multiple)
{
    for (std::size_t align = 1; align <= 64; align *= 2)
        for (std::size_t bytes = 0; bytes < 200; ++bytes) {
            std::size_t const up = align_up(bytes, align);
            EXPECT_TRUE(up % align == 0 && up >= bytes && up - bytes < align);
        }
    EXPECT_EQ(align_up(SIZE_MAX, 2), 0u) << "wraps when there is none";
    EXPECT_EQ(align_up(SIZE_MAX, 1), SIZE_MAX);
    EXPECT_EQ(align_up(1, top), top);
}

TEST(bits, round_addresses_up_to_an_alignment)
{
    alignas(64) std::byte memory[128];
    EXPECT_EQ(align_up(memory, 64), memory);
    EXPECT_EQ(align_up(memory + 1, 64), memory + 64);
    EXPECT_EQ(align_up(memory + 63, 1), memory + 63);
}

TEST(bits, saturate_instead_of_wrapping)
{
    EXPECT_EQ(saturating_add(1, 2), 3u);
    EXPECT_EQ(saturating_add(SIZE_MAX, 0), SIZE_MAX);
    EXPECT_EQ(saturating_add(SIZE_MAX, 1), SIZE_MAX);
    EXPECT_EQ(saturating_add(top, top), SIZE_MAX);
    EXPECT_EQ(saturating_mul(3, 4), 12u);
    EXPECT_EQ(saturating_mul(SIZE_MAX, 0), 0u);
    EXPECT_EQ(saturating_mul(0, SIZE_MAX), 0u);
    EXPECT_EQ(saturating_mul(SIZE_MAX, 1), SIZE_MAX);
    EXPECT_EQ(saturating_mul(SIZE_MAX / 2, 2), SIZE_MAX - 1);
    EXPECT_EQ(saturating_mul(top, 2), SIZE_MAX);
    EXPECT_EQ(saturating_mul(std::size_t{1} << 32, std::size_t{1} << 32), SIZE_MAX);
}

TEST(layout, has_max_align_by_default)
{
    EXPECT_EQ(layout(24).align, alignof(std::max_align_t));
    EXPECT_EQ(layout(24), layout(24, 16));
    EXPECT_NE(layout(24), layout(24, 8));
    layout const from_bytes = 24;
    EXPECT_EQ(from_bytes.bytes, 24u);
}

TEST(layout, accepts_any_size_and_every_power_of_two)
{
    for (std::size_t align = 1; align != 0; align *= 2)
        EXPECT_EQ(layout(SIZE_MAX, align).align, align);
    static_assert(layout(0, 1).bytes == 0);
}

TEST(layout, of_objects_has_their_size_and_alignment)
{
    struct alignas(32) wide {
        char bytes[40];
    };
    static_assert(layout_of<wide>() == layout(64, 32));
    static_assert(layout_of<wide>(3) == layout(192, 32));
    static_assert(layout_of<int>(0) == layout(0, 4));
}

TEST(layout, of_more_objects_than_addresses_fails_in_every_function)
{
    static_assert(layout_of<int>(SIZE_MAX).bytes == SIZE_MAX);
    static_assert(layout_of<int>(SIZE_MAX / 4 + 1).bytes == SIZE_MAX);
    static_assert(layout_of<int>(SIZE_MAX / 4).bytes > bytes_max);
}

TEST(bits, replace_an_exception_by_a_default_value)
{
    EXPECT_EQ(mallard::value_or_nothing([] { return 7; }), 7);
    EXPECT_EQ(mallard::value_or_nothing([]() -> int { throw std::runtime_error("no"); }), 0);
    EXPECT_EQ(mallard::value_or_nothing([]() -> void* { throw 1; }), nullptr);
    EXPECT_THROW(mallard::throw_bad_alloc(), std::bad_alloc);
}

} // namespace
