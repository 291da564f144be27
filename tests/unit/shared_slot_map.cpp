#include "../support/threads.hpp"

#include <mallard/shared_slot_map.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace {

using namespace mallard::testing;
using namespace mallard;

TEST(shared_slot_map, finds_each_element_by_its_key)
{
    shared_slot_map<std::string> words;
    key64 const duck = words.insert("duck"), swan = words.emplace(3U, 's');
    EXPECT_EQ(*words.get(duck), "duck");
    EXPECT_EQ(words.get(swan)->size(), 3U);
    EXPECT_TRUE(words.contains(swan));
    EXPECT_EQ(words.size(), 2U);
    EXPECT_FALSE(words.get(key64()));
    EXPECT_FALSE(words.get(key64(~std::uint64_t{0})));
    shared_slot_map<int, key<20, 4>> narrow;
    auto const k = narrow.insert(1);
    // Sets a bit above the bits of the key.
    EXPECT_FALSE(narrow.get(key<20, 4>(k.value() | 1U << 31)));
    EXPECT_FALSE(words.with(key64(5), [](std::string&) { FAIL(); }));
}

TEST(shared_slot_map, finds_nothing_for_a_stale_key)
{
    shared_slot_map<int> numbers;
    std::vector<key64> stale;
    for (int i = 0; i < 100; ++i) {
        key64 const k = numbers.insert(i);
        EXPECT_EQ(numbers.read(k), i);
        EXPECT_TRUE(numbers.remove(k));
        EXPECT_FALSE(numbers.remove(k));
        stale.push_back(k);
    }
    key64 const fresh = numbers.insert(1);
    for (key64 const k : stale)
        EXPECT_FALSE(numbers.get(k) || numbers.read(k) || numbers.contains(k));
    EXPECT_TRUE(numbers.contains(fresh));
}

TEST(shared_slot_map, destroys_an_element_with_its_last_guard)
{
    auto const owner = std::make_shared<int>(5);
    shared_slot_map<std::shared_ptr<int>> owners;
    key64 const k = owners.insert(owner);
    auto one = owners.get(k);
    auto two = std::move(one);
    one = owners.get(k);
    EXPECT_TRUE(owners.remove(k));
    EXPECT_FALSE(owners.get(k));
    EXPECT_EQ(owner.use_count(), 2);
    EXPECT_EQ(owners.size(), 1U); // a guard still holds the element
    in_a_thread([guard = std::move(one)]() mutable { guard.reset(); });
    EXPECT_EQ(owner.use_count(), 2);
    two.reset();
    EXPECT_EQ(owner.use_count(), 1);
    EXPECT_EQ(owners.size(), 0U);
}

TEST(shared_slot_map, destroys_its_elements_in_its_destructor)
{
    auto const owner = std::make_shared<int>(5);
    {
        shared_slot_map<std::shared_ptr<int>, key<20, 1>>
            owners; // has one generation, so each slot gets one element
        for (int i = 0; i < 1000; ++i) {
            auto const k = owners.insert(owner);
            if (i % 3 != 0)
                owners.remove(k);
        }
        EXPECT_EQ(owner.use_count(), 335);
        EXPECT_EQ(owners.retired(), 666U);
        EXPECT_EQ(owners.size(), 334U);
    }
    EXPECT_EQ(owner.use_count(), 1);
}

TEST(shared_slot_map, can_be_used_by_constructors_and_destructors_of_elements)
{
    struct parent;
    using family = shared_slot_map<parent>;
    struct parent {
        family& all;
        std::atomic<int>& alive;
        key64 child;
        parent(family& in, std::atomic<int>& count, int depth) : all(in), alive(count)
        {
            alive += 1;
            if (depth > 0)
                child = all.emplace(all, alive, depth - 1);
        }
        ~parent()
        {
            all.remove(child);
            alive -= 1;
        }
    };
    std::atomic<int> alive = 0;
    {
        family parents;
        parents.remove(parents.emplace(parents, alive, 9));
        EXPECT_EQ(alive, 0);
        parents.emplace(parents, alive, 9);
        parents.emplace(parents, alive, 9);
        EXPECT_EQ(alive, 20);
    }
    EXPECT_EQ(alive, 0);
}

TEST(shared_slot_map, retires_a_slot_whose_generations_are_used_up)
{
    shared_slot_map<int, key<20, 4>> numbers;
    std::vector<key<20, 4>> keys;
    for (int i = 0; i < 100; ++i) {
        keys.push_back(numbers.insert(i));
        numbers.remove(keys.back());
    }
    EXPECT_EQ(numbers.retired(), 6U); // each slot had 15 elements
    std::ranges::sort(keys);
    EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
    for (auto const k : keys)
        EXPECT_FALSE(numbers.contains(k));
    EXPECT_EQ(numbers.size(), 0U);
}

TEST(shared_slot_map, is_unchanged_when_a_constructor_throws)
{
    struct thrower {
        explicit thrower(bool throws)
        {
            if (throws)
                throw 1;
        }
        ~thrower() {}
    };
    shared_slot_map<thrower> throwers;
    key64 const k = throwers.emplace(false);
    EXPECT_THROW(throwers.emplace(true), int);
    EXPECT_THROW(std::ignore = throwers.try_emplace(true), int);
    EXPECT_EQ(throwers.size(), 1U);
    EXPECT_TRUE(throwers.contains(k));
}

TEST(shared_slot_map, visits_each_element_in_for_each)
{
    shared_slot_map<int> numbers;
    int sum = 0;
    for (int i = 0; i < 1000; ++i)
        numbers.insert(i);
    numbers.for_each([&](key64 k, int& value) {
        sum += value;
        EXPECT_EQ(value % 2 == 0 && numbers.remove(k), value % 2 == 0);
    });
    EXPECT_EQ(sum, 499'500);
    EXPECT_EQ(numbers.size(), 500U);
    numbers.clear();
    EXPECT_EQ(numbers.size(), 0U);
}

TEST(shared_slot_map, fails_when_full_and_continues_to_work)
{
    constexpr shared_slot_map_options small{.bytes_max = std::size_t{1} << 20};
    struct page {
        char bytes[4096];
    };
    shared_slot_map<page, key64, small> pages;
    std::vector<key64> keys;
    while (key64 const k = pages.try_emplace())
        keys.push_back(k);
    EXPECT_GT(keys.size(), 100U);
    EXPECT_LT(keys.size(), 256U);
    EXPECT_THROW(pages.emplace(), std::bad_alloc);
    EXPECT_TRUE(pages.remove(keys[50]));
    EXPECT_TRUE(pages.try_emplace());
    EXPECT_FALSE(pages.try_emplace());
    EXPECT_LE(pages.stats().bytes_live, pages.stats().bytes_taken);
}

TEST(shared_slot_map, never_uses_an_index_that_no_key_can_hold)
{
    shared_slot_map<std::uint64_t, key<16, 8>> numbers;
    std::vector<key<16, 8>> keys;
    while (auto const k = numbers.try_emplace(keys.size()))
        keys.push_back(k);
    EXPECT_GT(keys.size(), 55'000U); // most of 65,535: seven whole chunks of 64 KiB
    EXPECT_LT(keys.front().index(), 512U) << "memory outside chunks has no numbers";
    for (std::size_t i = 0; i < keys.size(); ++i)
        EXPECT_EQ(numbers.read(keys[i]), i);
    EXPECT_EQ(keys.back().generation(), 1U);
}

TEST(shared_slot_map, holds_elements_of_any_size_and_alignment)
{
    struct nothing {};
    struct alignas(256) wide {
        char first = 'w';
    };
    struct odd {
        char bytes[13];
    };
    shared_slot_map<nothing> nothings;
    EXPECT_NE(nothings.emplace(), nothings.emplace());
    shared_slot_map<wide> wides;
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&*wides.get(wides.emplace())) % 256, 0U);
    shared_slot_map<odd> odds;
    EXPECT_STREQ(odds.read(odds.insert({"twelve chars"}))->bytes, "twelve chars");
}

} // namespace
