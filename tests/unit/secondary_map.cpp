#include <mallard/secondary_map.hpp>
#include <mallard/slot_map.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace {

using namespace mallard;

template <class Map>
class a_secondary_map : public ::testing::Test {};
using kinds = ::testing::Types<secondary_map<key32, std::string>,
                               secondary_map<key32, std::string, default_heap>,
                               secondary_map<key32, std::string, fixed<500>, check::on>,
                               sparse_secondary_map<key32, std::string>>;
TYPED_TEST_SUITE(a_secondary_map, kinds);

TYPED_TEST(a_secondary_map, has_a_value_for_some_keys)
{
    slot_map<int> numbers;
    TypeParam names;
    key32 const one = numbers.insert(1), two = numbers.insert(2);
    EXPECT_EQ(names.get(one), nullptr);
    EXPECT_EQ(*names.set(one, "one"), "one");
    EXPECT_EQ(*names.get(one), "one");
    EXPECT_FALSE(names.contains(two));
    EXPECT_EQ(*names.set(one, "uno"), "uno");
    EXPECT_EQ(names.size(), 1U);
    EXPECT_EQ(names.remove(one), "uno");
    EXPECT_FALSE(names.erase(one));
    EXPECT_TRUE(names.empty());
    EXPECT_EQ(names.set(key32(), "null"), nullptr);
}

TYPED_TEST(a_secondary_map, has_no_value_for_a_newer_key_of_the_slot)
{
    slot_map<int> numbers;
    TypeParam names;
    key32 const old = numbers.insert(1);
    names.set(old, "old");
    numbers.erase(old);
    key32 const young = numbers.insert(2);
    ASSERT_EQ(old.index(), young.index());
    EXPECT_FALSE(names.contains(young));
    EXPECT_EQ(*names.set(young, "young"), "young");
    EXPECT_FALSE(names.contains(old));
    // A newer element has replaced the one of the older key.
    EXPECT_EQ(names.set(old, "late"), nullptr);
    EXPECT_EQ(*names.get(young), "young");
    EXPECT_EQ(names.size(), 1U);
}

TYPED_TEST(a_secondary_map, can_be_iterated_together_with_the_slot_map)
{
    slot_map<std::size_t> numbers;
    TypeParam names;
    secondary_map<key32, std::size_t> halves;
    std::vector<key32> keys;
    for (std::size_t i = 0; i < 300; ++i) {
        keys.push_back(numbers.insert(i));
        if (i % 3 == 0)
            names.set(keys.back(), std::to_string(i));
        if (i % 2 == 0)
            halves.set(keys.back(), i / 2);
    }
    for (std::size_t i = 0; i < 300; i += 5)
        numbers.erase(keys[i]); // the names of these keys stay, but are not visited
    std::size_t met = 0;
    numbers.for_each(
        [&](key32 k, std::size_t& number, std::string& name, const std::size_t& half) {
            EXPECT_EQ(keys[number], k);
            EXPECT_EQ(std::to_string(number), name);
            EXPECT_EQ(number, half * 2);
            met += 1;
        },
        names, std::as_const(halves));
    EXPECT_EQ(met, 40U); // the 50 multiples of 6 without the multiples of 30
    std::size_t const dead =
        erase_if(names, [&](key32 k, std::string&) { return !numbers.contains(k); });
    EXPECT_EQ(dead, 20U);
    std::as_const(numbers).for_each(
        [&](key32, const std::size_t&, const std::string&) { met += 1; }, std::as_const(names));
    EXPECT_EQ(met, 120U);
    names.clear();
    names.for_each([](key32, std::string&) { FAIL(); });
}

TEST(a_dense_secondary_map, moves_all_values_and_stays_usable)
{
    secondary_map<key32, std::unique_ptr<int>> owners;
    key32 const k((1U << 20) + 1000);
    owners.emplace(k, new int(5));
    auto there = std::move(owners);
    EXPECT_EQ(**there.get(k), 5);
    EXPECT_TRUE(owners.empty());
    owners = std::move(there);
    EXPECT_EQ(**owners.get(k), 5);
    for (auto const& [key, value] : owners)
        EXPECT_EQ(key, k);
    EXPECT_EQ(owners.stats().blocks_live, 1U);
    EXPECT_EQ(owners.set(key32(5), nullptr), nullptr); // no map has an element of generation 0
}

} // namespace
