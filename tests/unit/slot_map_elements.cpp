#include "../support/asan.hpp"
#include "../support/slot_map_kinds.hpp"

#include <algorithm>
#include <functional>
#include <ranges>
#include <vector>

namespace {

using namespace mallard::testing;
using namespace mallard;

TYPED_TEST_SUITE(a_slot_map, slot_map_kinds, slot_map_names);

TYPED_TEST(a_slot_map, is_iterated_in_the_order_of_slots)
{
    typename TestFixture::template map<std::size_t> numbers;
    std::vector<key32> keys;
    for (std::size_t i = 0; i < 200; ++i)
        keys.push_back(numbers.insert(i));
    for (std::size_t i = 0; i < 200; ++i)
        if (i % 7 != 3 && !(i >= 60 && i < 140))
            numbers.erase(keys[i]);
    std::vector<std::pair<key32, std::size_t>> met, called;
    for (auto [k, value] : std::as_const(numbers))
        met.emplace_back(k, value);
    numbers.for_each([&](key32 k, std::size_t& value) { called.emplace_back(k, value); });
    EXPECT_EQ(met, called);
    EXPECT_EQ(met.size(), numbers.size());
    EXPECT_TRUE(std::ranges::is_sorted(met, {}, [](auto& m) { return m.first.index(); }));
    for (auto [k, value] : met)
        EXPECT_EQ(keys[value], k);
    for (auto it = numbers.begin(); it != numbers.end(); ++it)
        it->value += 1;
    EXPECT_EQ(*numbers.get(met.front().first), met.front().second + 1);
}

TYPED_TEST(a_slot_map, can_be_changed_during_an_iteration)
{
    typename TestFixture::template map<int> numbers;
    std::vector<key32> keys;
    for (int i = 0; i < 100; ++i)
        keys.push_back(numbers.insert(i));
    int met = 0;
    numbers.for_each([&](key32 k, int& value) { // each element erases itself and the next one
        met += 1;
        EXPECT_EQ(value % 2, 0);
        if (value + 1 < 100)
            numbers.erase(keys[static_cast<std::size_t>(value) + 1]);
        numbers.erase(k);
    });
    EXPECT_EQ(met, 50);
    EXPECT_TRUE(numbers.empty());
    for (int i = 0; i < 100; ++i)
        numbers.insert(i);
    for (auto [k, value] : numbers)
        numbers.erase(k);
    EXPECT_TRUE(numbers.empty());
}

TYPED_TEST(a_slot_map, retains_the_elements_that_a_predicate_keeps)
{
    typename TestFixture::template map<int> numbers;
    for (int i = 0; i < 100; ++i)
        numbers.insert(i);
    EXPECT_EQ(numbers.retain([](key32, int& value) { return value % 3 == 0; }), 66U);
    EXPECT_EQ(erase_if(numbers, [](key32, int& value) { return value > 50; }), 17U);
    for (auto const& entry : numbers)
        EXPECT_TRUE(entry.value % 3 == 0 && entry.value <= 50);
}

TYPED_TEST(a_slot_map, finds_several_distinct_elements_at_once)
{
    typename TestFixture::template map<int> numbers;
    key32 const a = numbers.insert(1), b = numbers.insert(2), c = numbers.insert(3);
    auto const [x, y, z] = numbers.get_disjoint(c, a, b);
    EXPECT_EQ(*x * 100 + *y * 10 + *z, 312);
    EXPECT_EQ(numbers.get_disjoint(a, b, a)[1], nullptr);
    numbers.erase(b);
    EXPECT_EQ(numbers.get_disjoint(a, b)[0], nullptr);
}

TYPED_TEST(a_slot_map, can_be_used_by_constructors_and_destructors_of_elements)
{
    struct parent;
    using family = typename TestFixture::template map<parent>;
    struct parent {
        family& all;
        key32 child;
        parent(family& in, int depth) : all(in)
        {
            if (depth > 0)
                child = all.emplace(all, depth - 1);
        }
        parent(parent&& other) noexcept : all(other.all), child(std::exchange(other.child, key32()))
        {
        }
        ~parent() { all.erase(child); }
    };
    family parents;
    key32 const k = parents.emplace(parents, 9);
    EXPECT_EQ(parents.size(), 10U);
    parents.erase(k);
    EXPECT_TRUE(parents.empty());
}

/// An element that looks itself up in the map in its destructor.
struct looks_itself_up {
    std::function<void()> look;
    explicit looks_itself_up(std::function<void()> f) : look(std::move(f)) {}
    looks_itself_up(looks_itself_up&&) = default;
    ~looks_itself_up()
    {
        if (look)
            look();
    }
};

TYPED_TEST(a_slot_map, finds_no_element_during_its_destructor)
{
    typename TestFixture::template map<looks_itself_up> elements;
    int looks = 0;
    for (int i = 0; i < 2; ++i) { // the second element reuses the slot
        key32 key;
        key = elements.emplace([&] {
            looks += 1;
            EXPECT_FALSE(elements.contains(key));
            EXPECT_EQ(elements.get(key), nullptr);
        });
        elements.erase(key);
        EXPECT_EQ(looks, i + 1);
    }
}

TYPED_TEST(a_slot_map, holds_elements_of_any_size_and_alignment)
{
    struct nothing {};
    struct alignas(512) wide {
        char first = 'w';
    };
    typename TestFixture::template map<nothing> nothings;
    EXPECT_NE(nothings.get(nothings.emplace()), nothings.get(nothings.emplace()));
    typename TestFixture::template map<char> chars;
    key32 const a = chars.insert('a'), b = chars.insert('b');
    EXPECT_EQ(*chars.get(a), 'a');
    EXPECT_EQ(*chars.get(b), 'b');
    typename TestFixture::template map<wide> wides;
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wides.get(wides.emplace())) % 512, 0U);
}

TYPED_TEST(a_slot_map, poisons_erased_elements)
{
    typename TestFixture::template map<std::uint64_t> numbers;
    key32 const k = numbers.insert(1);
    const std::uint64_t* const place = numbers.get(k);
    EXPECT_FALSE(is_poisoned(place, false));
    EXPECT_TRUE(is_poisoned(place + 1, true)); // the next slot is still poisoned
    numbers.erase(k);
    EXPECT_TRUE(is_poisoned(place, true));
    EXPECT_FALSE(numbers.contains(k));
}

TYPED_TEST(a_slot_map, reports_statistics)
{
    typename TestFixture::template map<std::uint64_t> numbers;
    EXPECT_EQ(numbers.stats().blocks_live, 0U);
    for (std::uint64_t i = 0; i < 100; ++i)
        numbers.insert(i);
    statistics const s = numbers.stats();
    EXPECT_EQ(s.blocks_live, 100U);
    EXPECT_EQ(s.bytes_live, 800U);
    EXPECT_EQ(s.bytes_idle, 8 * (numbers.capacity() - 100));
}

TYPED_TEST(a_slot_map, passes_its_key_to_a_new_element)
{
    struct node {
        key32 self;
    };
    typename TestFixture::template map<node> nodes;
    key32 const k = nodes.insert_with([](key32 self) { return node{self}; });
    EXPECT_EQ(nodes.get(k)->self, k);
}

} // namespace
