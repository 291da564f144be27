#include <mallard/secondary_map.hpp>
#include <mallard/slot_map.hpp>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
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
    // A newer element has replaced the element of the older key.
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

template <class Map>
class a_secondary_map_of_any_key : public ::testing::Test {};
using dense_kinds =
    ::testing::Types<secondary_map<key64, std::array<std::string, 8>>,
                     secondary_map<key64, std::array<std::string, 8>, default_heap>,
                     secondary_map<key64, std::string, reserved<>, check::on>,
                     secondary_map<key64, std::string, default_heap, check::on>,
                     secondary_map<key64, std::array<std::string, 4096>, reserved<1 << 30>>>;
TYPED_TEST_SUITE(a_secondary_map_of_any_key, dense_kinds);

std::string& text(std::string& value)
{
    return value;
}
template <std::size_t N>
std::string& text(std::array<std::string, N>& value)
{
    return value[N - 1];
}

TYPED_TEST(a_secondary_map_of_any_key, needs_no_more_memory_for_a_forged_key_than_for_a_valid_one)
{
    using value = typename TypeParam::value_type;
    TypeParam texts;
    ASSERT_TRUE(texts.try_emplace(key64(std::uint64_t{1} << 32 | 1)));
    std::size_t const first = texts.stats().bytes_taken;
    std::uint64_t const indices = texts.storage().limit();
    ASSERT_TRUE(texts.try_emplace(key64(std::uint64_t{1} << 32 | (indices - 1))));
    std::size_t const island = std::max<std::size_t>(first, 64 * sizeof(value));
    EXPECT_LE(texts.stats().bytes_taken, first + 2 * island + 5'000);
    EXPECT_EQ(texts.get(key64(indices - 1)), nullptr);
    EXPECT_EQ(texts.get(key64(std::uint64_t{1} << 32 | 77)), nullptr);
    EXPECT_EQ(texts.get(key64()), nullptr);
}

/// A map, and a `std::map` with the contents that it must have.
template <class Map>
struct map_and_model {
    Map texts;
    std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> model; // by index

    std::uint64_t near_or_far_index(std::mt19937_64& random) const
    {
        if (!model.empty() && random() % 2 == 0)
            return std::next(model.begin(), static_cast<long>(random() % model.size()))->first;
        std::uint64_t const limit = texts.storage().limit();
        std::uint64_t const spreads[] = {10, 1 << 9, 1 << 18, 1 << 24, limit};
        return 1 + random() % (std::min(spreads[random() % 5], limit) - 1) / 3 * 3;
    }

    void change_one(key64 k, std::uint64_t action)
    {
        auto const there = model.find(k.index());
        bool const same = there != model.end() && there->second.first == k.generation();
        if (action < 4) {
            auto* const made = texts.try_emplace(k);
            bool const outdated = there != model.end() && there->second.first > k.generation();
            ASSERT_EQ(made == nullptr, outdated);
            if (made == nullptr)
                return;
            text(*made) = std::to_string(model.size()) + " is longer than a short string";
            model[k.index()] = {k.generation(), text(*made)};
        } else if (action < 6) {
            ASSERT_EQ(action == 4 ? texts.erase(k) : texts.remove(k).has_value(), same);
            if (same)
                model.erase(there);
        } else {
            ASSERT_EQ(texts.contains(k), same);
        }
        ASSERT_EQ(texts.size(), model.size());
    }
    void erase_half()
    {
        erase_if(texts, [](key64 key, auto&) { return key.index() % 2 == 0; });
        std::erase_if(model, [](auto const& e) { return e.first % 2 == 0; });
    }
    void compare()
    {
        auto expected = model.begin();
        for (auto [key, found] : texts) { // in the order of slots
            ASSERT_EQ(key.index(), expected->first);
            ASSERT_EQ(key.generation(), expected->second.first);
            ASSERT_EQ(text(found), expected->second.second);
            ++expected;
        }
        ASSERT_EQ(expected, model.end());
    }
};

TYPED_TEST(a_secondary_map_of_any_key, agrees_with_an_ordered_map)
{
    std::mt19937_64 random(7);
    map_and_model<TypeParam> both;
    both.change_one(key64(std::uint64_t{1} << 32 | 1), 0); // reserves the memory
    int const steps = sizeof(typename TypeParam::value_type) > 4096 ? 300 : 6000;
    for (int step = 0; step < steps && !this->HasFatalFailure(); ++step) {
        std::uint64_t const index = both.near_or_far_index(random);
        both.change_one(key64((1 + random() % 3) << 32 | index), random() % 8);
        if (step % 400 == 399)
            both.erase_half();
        if (step % 100 == 0)
            both.compare();
        if (step == 3000)
            both.texts = TypeParam(std::move(both.texts));
    }
}

TYPED_TEST(a_secondary_map_of_any_key, is_iterated_together_with_another_map)
{
    TypeParam texts;
    secondary_map<key64, int, default_heap> numbers;
    for (std::uint64_t i = 1; i < texts.storage().limit() || i == 1; i *= 2) {
        numbers.set(key64(std::uint64_t{1} << 32 | i), static_cast<int>(i % 1000));
        if (i % 3 == 1 && i < 1'000'000'000 && texts.try_emplace(key64(std::uint64_t{1} << 32 | i)))
            text(*texts.get(key64(std::uint64_t{1} << 32 | i))) = std::to_string(i % 1000);
    }
    std::size_t met = 0;
    auto const compare = [&](key64, auto& a, int b) {
        EXPECT_EQ(text(a), std::to_string(b));
        met += 1;
    };
    texts.for_each(compare, numbers);
    EXPECT_EQ(met, texts.size());
    numbers.for_each([&](key64 k, int& b, auto& a) { compare(k, a, b); }, texts);
    EXPECT_EQ(met, 2 * texts.size());
}

} // namespace
