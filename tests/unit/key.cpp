#include <mallard/key.hpp>

#include <gtest/gtest.h>

#include <set>
#include <type_traits>
#include <unordered_set>

namespace {

using namespace mallard;

static_assert(sizeof(key32) == 4 && sizeof(key64) == 8 && sizeof(key<8, 4>) == 4);
static_assert(std::is_trivially_copyable_v<key32> && std::is_trivially_copyable_v<key64>);
static_assert(!std::is_same_v<key<20, 12, struct red>, key<20, 12, struct blue>>);
static_assert(!std::is_convertible_v<std::uint32_t, key32>);

TEST(key, is_null_by_default)
{
    EXPECT_FALSE(key32());
    EXPECT_EQ(key32().value(), 0U);
    EXPECT_TRUE(key32(1));
}

TEST(key, has_the_index_in_the_low_bits_and_the_generation_in_the_high_bits)
{
    constexpr key<20, 12> narrow((7U << 20) + 5);
    EXPECT_EQ(narrow.index(), 5U);
    EXPECT_EQ(narrow.generation(), 7U);
    constexpr key64 wide((std::uint64_t{7} << 32) + 5);
    EXPECT_EQ(wide.index(), 5U);
    EXPECT_EQ(wide.generation(), 7U);
    using small = key<8, 4>;
    EXPECT_EQ(small::value_max, (1U << 12) - 1);
    EXPECT_EQ(key32::value_max, ~std::uint32_t{0});
    EXPECT_EQ(key64::value_max, ~std::uint64_t{0});
}

TEST(key, can_be_restored_from_its_integer)
{
    for (std::uint32_t const value : {0U, 1U, 0x100001U, ~0U})
        EXPECT_EQ(key32(value).value(), value);
}

TEST(key, is_ordered_and_hashed)
{
    EXPECT_LT(key32(1), key32(2));
    EXPECT_LT(key32(2), key32((1U << 20) + 1)); // ordered by generation first
    std::set<key64> const ordered{key64(2), key64(1), key64(2)};
    EXPECT_EQ(ordered.size(), 2U);
    std::unordered_set<key32> const hashed{key32(2), key32(1), key32(2)};
    EXPECT_EQ(hashed.size(), 2U);
}

} // namespace
