#include "../support/element.hpp"
#include "../support/slot_map_kinds.hpp"

#include <vector>

namespace {

using namespace mallard::testing;
using namespace mallard;

TYPED_TEST_SUITE(a_slot_map, slot_map_kinds, slot_map_names);

TYPED_TEST(a_slot_map, finds_each_element_by_its_key)
{
    typename TestFixture::template map<std::string> words;
    key32 const duck = words.insert("duck");
    key32 const swan = words.emplace(3U, 's');
    EXPECT_EQ(*words.get(duck), "duck");
    EXPECT_EQ(*std::as_const(words).get(swan), "sss");
    EXPECT_EQ(words.size(), 2U);
    EXPECT_TRUE(words.contains(duck));
}

TYPED_TEST(a_slot_map, finds_nothing_for_a_stale_key)
{
    typename TestFixture::template map<int> numbers;
    std::vector<key32> stale;
    for (int i = 0; i < 100; ++i) {
        key32 const k = numbers.insert(i);
        EXPECT_TRUE(numbers.erase(k));
        stale.push_back(k);
    }
    key32 const fresh = numbers.insert(7);
    EXPECT_EQ(fresh.index(), stale.back().index()); // the last freed slot is used first
    for (key32 const k : stale) {
        EXPECT_EQ(numbers.get(k), nullptr);
        EXPECT_FALSE(numbers.erase(k));
        EXPECT_FALSE(numbers.remove(k));
    }
    EXPECT_EQ(*numbers.get(fresh), 7);
}

TYPED_TEST(a_slot_map, finds_nothing_for_a_forged_key)
{
    typename TestFixture::template map<int, key<8, 4>> numbers;
    std::vector<key<8, 4>> live;
    auto const expect_only_those = [&] {
        std::size_t found = 0;
        // Tries 14 bits, two more than this key has.
        for (std::uint32_t value = 0; value < 1U << 14; ++value)
            found += numbers.contains(key<8, 4>(value));
        EXPECT_EQ(found, live.size());
        EXPECT_FALSE(numbers.contains(key<8, 4>(~0U)));
        for (auto const k : live)
            EXPECT_TRUE(numbers.contains(k));
    };
    expect_only_those();
    for (int i = 0; i < 150; ++i)
        live.push_back(numbers.insert(i));
    expect_only_those();
    for (int i = 0; i < 100; ++i) {
        std::swap(live[static_cast<std::size_t>(i) * 7 % live.size()], live.back());
        numbers.erase(live.back());
        live.pop_back();
    }
    expect_only_those();
    EXPECT_TRUE(numbers.detach(live.back()));
    live.pop_back();
    expect_only_those();
}

TYPED_TEST(a_slot_map, uses_every_generation_of_a_slot_and_then_retires_it)
{
    typename TestFixture::template map<int, key<8, 4>> numbers;
    std::vector<key<8, 4>> stale;
    auto const one = numbers.insert(0);
    auto k = one;
    do {
        numbers.erase(k);
        stale.push_back(k);
        k = numbers.insert(1);
    } while (k.index() == one.index());
    EXPECT_EQ(stale.size(), 15U); // 2^4, without generation 0
    EXPECT_EQ(numbers.retired(), 1U);
    for (int i = 0; i < 50; ++i)
        numbers.insert(i);
    for (auto const old : stale)
        EXPECT_FALSE(numbers.contains(old));
    EXPECT_EQ(numbers.size(), 51U);
}

TYPED_TEST(a_slot_map, restarts_at_generation_1_if_generations_wrap)
{
    typename TestFixture::template map<int, key<8, 4>, slot_map_options{.wrapping = true}> numbers;
    auto const first = numbers.insert(0);
    for (int i = 0; i < 15; ++i) {
        auto const k = i == 0 ? first : numbers.insert(i);
        EXPECT_EQ(k.index(), first.index());
        numbers.erase(k);
    }
    EXPECT_EQ(numbers.insert(1), first);
    EXPECT_EQ(numbers.retired(), 0U);
}

TYPED_TEST(a_slot_map, never_moves_an_element)
{
    typename TestFixture::template map<int> numbers;
    std::vector<std::pair<key32, int*>> places;
    for (int i = 0; i < 200; ++i) {
        key32 const k = numbers.insert(i);
        places.emplace_back(k, numbers.get(k));
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
        EXPECT_EQ(numbers.get(places[i].first), places[i].second);
        EXPECT_EQ(*places[i].second, i);
        EXPECT_EQ(numbers.key_of(*places[i].second), places[i].first);
    }
}

TYPED_TEST(a_slot_map, moves_an_element_out)
{
    typename TestFixture::template map<std::unique_ptr<int>> owners;
    key32 const k = owners.insert(std::make_unique<int>(5));
    std::optional<std::unique_ptr<int>> const out = owners.remove(k);
    ASSERT_TRUE(out);
    EXPECT_EQ(**out, 5);
    EXPECT_FALSE(owners.contains(k));
    EXPECT_TRUE(owners.empty());
}

TYPED_TEST(a_slot_map, reserves_the_key_of_a_detached_element)
{
    typename TestFixture::template map<std::string> words;
    key32 const k = words.insert("out");
    key32 const other = words.insert("stays");
    EXPECT_EQ(words.detach(k), "out");
    EXPECT_FALSE(words.contains(k));
    EXPECT_FALSE(words.detach(k));
    EXPECT_EQ(words.size(), 1U);
    EXPECT_EQ(words.detached(), 1U);
    for (int i = 0; i < 50; ++i)
        EXPECT_NE(words.insert("new").index(), k.index());

    std::string back = "back";
    EXPECT_EQ(words.reattach(other, std::move(back)), nullptr); // the element was not detached
    EXPECT_EQ(back, "back");
    EXPECT_EQ(*words.reattach(k, std::move(back)), "back");
    EXPECT_EQ(*words.get(k), "back");
    EXPECT_EQ(words.detached(), 0U);

    EXPECT_TRUE(words.detach(k));
    EXPECT_TRUE(words.erase(k)); // ends the reservation of the key's slot
    EXPECT_FALSE(words.erase(k));
    EXPECT_EQ(words.reattach(k, "late"), nullptr);
    EXPECT_EQ(words.insert("next").index(), k.index());
}

TYPED_TEST(a_slot_map, makes_all_keys_stale_when_cleared)
{
    typename TestFixture::template map<std::string> words;
    std::vector<key32> keys;
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 150; ++i)
            keys.push_back(words.insert("a word too long for a string itself"));
        EXPECT_TRUE(words.detach(keys.back()));
        words.clear();
        EXPECT_TRUE(words.empty());
        EXPECT_EQ(words.detached(), 0U);
        for (key32 const k : keys)
            EXPECT_FALSE(words.contains(k) || words.reattach(k, "x") != nullptr);
    }
    EXPECT_EQ(words.begin(), words.end());
}

TYPED_TEST(a_slot_map, is_unchanged_when_a_constructor_throws)
{
    typename TestFixture::template map<element> elements;
    key32 const stays = elements.emplace(1U);
    for (int i = 0; i < 5; ++i) {
        element::throw_in = 1;
        EXPECT_THROW(elements.emplace(2U), int);
        element::throw_in = 1;
        EXPECT_THROW(std::ignore = elements.try_emplace(2U), int);
    }
    EXPECT_EQ(elements.size(), 1U);
    EXPECT_EQ(element::live, 1U);
    key32 const next = elements.emplace(3U);
    EXPECT_EQ(next.generation(), 1U); // no generation was skipped
    element::throw_in = 1;
    EXPECT_THROW(elements.remove(next), int);
    // The move constructor of the element threw, so the element stays.
    EXPECT_EQ(elements.get(next)->number(), 3U);
    EXPECT_TRUE(elements.detach(next));
    element back(4);
    element::throw_in = 1;
    EXPECT_THROW(elements.reattach(next, std::move(back)), int);
    EXPECT_EQ(elements.detached(), 1U);
    EXPECT_EQ(elements.get(stays)->number(), 1U);
}

TYPED_TEST(a_slot_map, destroys_its_elements_in_its_destructor)
{
    {
        typename TestFixture::template map<element> elements;
        for (std::size_t i = 0; i < 150; ++i)
            elements.emplace(i);
        EXPECT_EQ(element::live, 150U);
    }
    EXPECT_EQ(element::live, 0U);
}

template <class Kind>
class a_movable_slot_map : public ::testing::Test {};
using movable_kinds = ::testing::Types<in_reserve, on_the_heap>;
TYPED_TEST_SUITE(a_movable_slot_map, movable_kinds, slot_map_names);

TYPED_TEST(a_movable_slot_map, moves_all_elements_and_stays_usable)
{
    typename TypeParam::template map<std::string> here;
    key32 const k = here.insert("here");
    const std::string* const place = here.get(k);
    auto there = std::move(here);
    EXPECT_EQ(there.get(k), place);
    EXPECT_TRUE(here.empty());
    EXPECT_FALSE(here.contains(k));
    EXPECT_EQ(here.begin(), here.end());
    key32 const again = here.insert("again");
    swap(here, there);
    EXPECT_EQ(*here.get(k), "here");
    EXPECT_EQ(*there.get(again), "again");
    here = std::move(there);
    EXPECT_EQ(*here.get(again), "again");
    EXPECT_EQ(here.size(), 1U);
    here = typename TypeParam::template map<std::string>();
    EXPECT_TRUE(here.empty());
}

constinit slot_map<int, key32, fixed<10>> constant;

TEST(a_fixed_slot_map, is_constant_initialised_and_fails_when_full)
{
    std::vector<key32> keys;
    for (int i = 0; i < 10; ++i)
        keys.push_back(constant.insert(i));
    EXPECT_FALSE(constant.try_emplace(11));
    EXPECT_THROW(constant.insert(11), std::bad_alloc);
    EXPECT_EQ(constant.capacity(), 10U);
    constant.erase(keys[4]);
    EXPECT_TRUE(constant.try_emplace(12));
    EXPECT_FALSE(constant.try_emplace(13));
    EXPECT_EQ(constant.stats().bytes_taken, 0U);
}

} // namespace
