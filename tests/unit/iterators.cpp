// All iterators of the library: their concepts, and their use by standard algorithms and ranges.
#include <mallard/persist/offset_ptr.hpp>
#include <mallard/secondary_map.hpp>
#include <mallard/shared_slot_map.hpp>
#include <mallard/slot_map.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <ranges>
#include <string>
#include <vector>

namespace {

using namespace mallard;

// --- the concepts, checked by the compiler

template <class It>
concept copied_and_assigned =
    std::copyable<It> && std::default_initializable<It> &&
    std::is_nothrow_copy_constructible_v<It> && std::is_nothrow_copy_assignable_v<It>;

template <class Map>
constexpr bool has_good_iterators()
{
    using it = typename Map::iterator;
    using const_it = typename Map::const_iterator;
    static_assert(copied_and_assigned<it> && copied_and_assigned<const_it>);
    static_assert(std::forward_iterator<it> && std::forward_iterator<const_it>);
    static_assert(std::sentinel_for<it, it> && std::sentinel_for<const_it, const_it>);
    static_assert(std::convertible_to<it, const_it> && !std::convertible_to<const_it, it>);
    static_assert(!std::constructible_from<it, const_it>);
    static_assert(std::ranges::forward_range<Map> && std::ranges::forward_range<const Map>);
    static_assert(std::ranges::common_range<Map> && std::ranges::common_range<const Map>);
    static_assert(std::same_as<std::ranges::iterator_t<const Map>, const_it>);
    static_assert(std::derived_from<typename std::iterator_traits<it>::iterator_category,
                                    std::input_iterator_tag>);
    return true;
}
static_assert(has_good_iterators<slot_map<int>>());
static_assert(has_good_iterators<slot_map<std::string, key64>>());
static_assert(has_good_iterators<slot_map<int, key32, default_heap>>());
static_assert(has_good_iterators<slot_map<int, key32, fixed<100>>>());
static_assert(
    has_good_iterators<slot_map<int, key32, reserved<>, slot_map_options{.checks = check::on}>>());
static_assert(has_good_iterators<secondary_map<key32, int>>());
static_assert(has_good_iterators<secondary_map<key64, std::string, default_heap>>());

static_assert(std::random_access_iterator<offset_ptr<int>>);
static_assert(std::random_access_iterator<offset_ptr<const std::string>>);
static_assert(std::sized_sentinel_for<offset_ptr<int>, offset_ptr<int>>);
static_assert(std::indirectly_writable<offset_ptr<int>, int>);
static_assert(!std::indirectly_writable<offset_ptr<const int>, int>);

// --- slot maps and secondary maps, each behind the same interface for the tests below

struct as_slot_map {
    using map = slot_map<int>;
    static void fill(map& m, int count)
    {
        for (int i = 0; i < count; ++i)
            m.insert(i);
    }
};
struct as_slot_map_in_chunks {
    using map = slot_map<int, key32, default_heap>;
    static void fill(map& m, int count)
    {
        for (int i = 0; i < count; ++i)
            m.insert(i);
    }
};
struct as_secondary_map {
    using map = secondary_map<key32, int>;
    static void fill(map& m, int count)
    {
        slot_map<int> keys;
        for (int i = 0; i < count; ++i)
            m.set(keys.insert(i), i);
    }
};

template <class Kind>
class keyed : public ::testing::Test {
public:
    using map_type = typename Kind::map;
    keyed() { Kind::fill(own, 200); }
    map_type own;
};
struct kind_names {
    template <class Kind>
    static std::string GetName(int)
    {
        return std::is_same_v<Kind, as_slot_map>             ? "slot_map"
               : std::is_same_v<Kind, as_slot_map_in_chunks> ? "slot_map_in_chunks"
                                                             : "secondary_map";
    }
};
using kinds = ::testing::Types<as_slot_map, as_slot_map_in_chunks, as_secondary_map>;
TYPED_TEST_SUITE(keyed, kinds, kind_names);

constexpr auto value_of = [](auto const& entry) { return entry.value; };

TYPED_TEST(keyed, iterators_can_be_copied_assigned_and_advanced)
{
    auto first = this->own.begin();
    auto second = first;
    EXPECT_EQ(second, first);
    EXPECT_EQ((*second++).value, 0);
    EXPECT_EQ(second->value, 1);
    EXPECT_EQ(first->value, 0) << "a copy is independent";
    first = second;
    EXPECT_EQ(first, second);
    typename TestFixture::map_type::const_iterator constant = first;
    EXPECT_EQ(constant->value, 1);
    constant = this->own.begin();
    EXPECT_EQ(constant->value, 0);
    EXPECT_EQ(typename TestFixture::map_type::iterator(), this->own.end());
    EXPECT_EQ(std::next(this->own.begin(), 199)->value, 199);
    EXPECT_EQ(std::next(this->own.begin(), 200), this->own.end());
}

TYPED_TEST(keyed, maps_work_with_standard_algorithms)
{
    auto const one = [](auto& map) {
        EXPECT_EQ(std::distance(map.begin(), map.end()), 200);
        auto const found = std::find_if(map.begin(), map.end(),
                                        [](auto const& entry) { return entry.value == 150; });
        EXPECT_EQ(found->value, 150);
        EXPECT_EQ(std::count_if(found, map.end(), [](auto const&) { return true; }), 50);
        EXPECT_EQ(std::accumulate(map.begin(), map.end(), 0,
                                  [](int sum, auto const& entry) { return sum + entry.value; }),
                  199 * 100);
        std::vector<int> values;
        std::transform(map.begin(), map.end(), std::back_inserter(values), value_of);
        EXPECT_TRUE(std::ranges::is_sorted(values));
        std::vector const entries(map.begin(), map.end());
        EXPECT_EQ(entries.size(), 200u);
        EXPECT_EQ(entries[7].value, 7);
    };
    one(this->own);
    one(std::as_const(this->own));
    std::for_each(this->own.begin(), this->own.end(), [](auto entry) { entry.value *= 2; });
    EXPECT_EQ(std::next(this->own.begin(), 21)->value, 42);
}

TYPED_TEST(keyed, maps_are_standard_ranges)
{
    auto const one = [](auto& map) {
        EXPECT_EQ(std::ranges::distance(map), 200);
        EXPECT_EQ(std::ranges::find(map, 150, value_of)->value, 150);
        EXPECT_EQ(std::ranges::max_element(map, {}, value_of)->value, 199);
        EXPECT_TRUE(std::ranges::is_sorted(map, {}, value_of)) << "in the order of slots";
        EXPECT_EQ(std::ranges::adjacent_find(map, std::greater_equal<>(), value_of), map.end());
        auto tens = map | std::views::filter([](auto const& e) { return e.value % 10 == 0; }) |
                    std::views::transform(value_of) | std::views::drop(5) | std::views::take(3);
        std::vector<int> met;
        std::ranges::copy(tens, std::back_inserter(met));
        std::ranges::copy(tens, std::back_inserter(met)); // a forward range can be iterated twice
        EXPECT_EQ(met, (std::vector{50, 60, 70, 50, 60, 70}));
    };
    one(this->own);
    one(std::as_const(this->own));
    for (auto entry : this->own | std::views::take(5))
        entry.value = 1000;
    EXPECT_EQ(std::ranges::count(this->own, 1000, value_of), 5);
}

TEST(offset_ptr, works_as_an_iterator_of_algorithms_and_ranges)
{
    std::vector<int> numbers(100);
    std::iota(numbers.rbegin(), numbers.rend(), 0);
    offset_ptr<int> const first = numbers.data(), last = first + 100;
    std::sort(first, last);
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
    EXPECT_EQ(std::lower_bound(first, last, 40) - first, 40);
    std::ranges::reverse(first, last);
    EXPECT_EQ(numbers.front(), 99);
    std::ranges::sort(std::ranges::subrange(first, last));
    EXPECT_EQ(std::ranges::find(first, last, 7) - first, 7);
    offset_ptr<const int> constant = first;
    EXPECT_EQ(*constant++, 0);
    EXPECT_EQ(constant[1], 2);
}

// --- elements that are erased or inserted during an iteration

/// Verifies for an iteration during which elements are erased:
/// - Each remaining element is visited once, in the order of slots.
/// - No element is visited that was erased before its turn.
/// - No element is visited twice.
template <class Walk>
void promises_of_a_walk(Walk walk)
{
    slot_map<int> map;
    std::vector<key32> keys;
    for (int i = 0; i < 200; ++i)
        keys.push_back(map.insert(i));
    std::vector<bool> erased(200);
    std::vector<int> met, met_new;
    walk(map, [&](key32 k, int value) {
        ASSERT_TRUE(map.contains(k)) << value;
        if (value >= 1000)
            return met_new.push_back(value);
        met.push_back(value);
        EXPECT_FALSE(erased[static_cast<std::size_t>(value)]) << value;
        if (value % 10 != 2)
            return;
        // Erases the current element, the next one, a later one, an earlier one, and one of another
        // group of slots.
        for (int const other : {value, value + 1, value + 5, value / 2, value + 100}) {
            auto const i = static_cast<std::size_t>(other) % 200;
            map.erase(keys[i]);
            erased[i] = true;
        }
        map.insert(1000 + value); // this element may be visited or not
    });
    EXPECT_TRUE(std::ranges::is_sorted(met));
    EXPECT_EQ(std::ranges::adjacent_find(met), met.end());
    for (auto const [k, value] : map)
        EXPECT_TRUE(value >= 1000 || std::ranges::binary_search(met, value)) << value;
    std::ranges::sort(met_new);
    EXPECT_EQ(std::ranges::adjacent_find(met_new), met_new.end());
}

TEST(a_walk_of_a_slot_map, by_iterators_visits_each_remaining_element_once_and_no_erased_one)
{
    promises_of_a_walk([](auto& map, auto visit) {
        for (auto [k, value] : map)
            visit(k, value);
    });
}

TEST(a_walk_of_a_slot_map, by_for_each_visits_each_remaining_element_once_and_no_erased_one)
{
    promises_of_a_walk([](auto& map, auto visit) { map.for_each(visit); });
}

TEST(a_walk_of_a_slot_map, by_retain_visits_each_remaining_element_once_and_no_erased_one)
{
    promises_of_a_walk([](auto& map, auto visit) {
        map.retain([&](key32 k, int& value) {
            visit(k, value);
            return true;
        });
    });
}

TEST(a_walk_of_a_secondary_map, visits_no_element_that_was_erased_before_its_turn)
{
    slot_map<int> map;
    secondary_map<key32, int> values;
    std::vector<key32> keys;
    for (int i = 0; i < 10; ++i) {
        keys.push_back(map.insert(i));
        values.set(keys.back(), i);
    }
    std::vector<int> met, joined;
    for (auto [k, value] : values) {
        met.push_back(value);
        if (value == 2) {
            values.erase(keys[3]);
            values.erase(keys[7]);
        }
    }
    EXPECT_EQ(met, (std::vector{0, 1, 2, 4, 5, 6, 8, 9}));
    map.for_each(
        [&](key32, int, int& value) {
            joined.push_back(value);
            if (value == 4) {
                values.erase(keys[5]); // erased only in the secondary map
                map.erase(keys[6]);
            }
        },
        values);
    EXPECT_EQ(joined, (std::vector{0, 1, 2, 4, 8, 9}));
}

TEST(a_walk_of_a_shared_slot_map, visits_no_element_that_the_visitor_removed_before_its_turn)
{
    shared_slot_map<int> map;
    std::vector<key64> keys;
    for (int i = 0; i < 10; ++i)
        keys.push_back(map.insert(i));
    std::vector<int> met;
    map.for_each([&](key64 k, int value) {
        met.push_back(value);
        if (value == 2) {
            map.remove(k);
            map.remove(keys[3]);
            map.remove(keys[7]);
            map.insert(1000);
        }
    });
    std::erase(met, 1000); // this element may be visited or not
    EXPECT_EQ(met, (std::vector{0, 1, 2, 4, 5, 6, 8, 9}));
    EXPECT_EQ(map.size(), 8u);
}

TEST(a_walk_of_a_pool, visits_each_block_once_when_the_visitor_frees_it)
{
    auto const all_modes = []<pool_options... O>() {
        auto const one = []<class Pool>(Pool&& blocks) {
            std::vector<void*> live(3000), met;
            blocks.allocate_batch(live);
            for (std::size_t i = 0; i < live.size(); i += 3)
                blocks.deallocate(std::exchange(live[i], nullptr));
            std::erase(live, nullptr);
            blocks.for_each([&](void* block) {
                met.push_back(block);
                blocks.deallocate(block);
            });
            std::ranges::sort(live);
            EXPECT_EQ(met, live) << "in the order of addresses";
            EXPECT_EQ(blocks.stats().blocks_live, 0u);
        };
        (one(pool<default_heap, O>()), ...);
    };
    all_modes.
    operator()<pool_options{.block = 48}, //
               pool_options{.block = 48, .order = reuse::lifo},
               pool_options{.block = 48, .order = reuse::fifo},
               pool_options{.block = 48, .checks = check::on},
               pool_options{.block = 48, .threads = sync::mutex},
               pool_options{.block = 48, .grow = growth::none(1 << 18), .threads = sync::lock_free},
               pool_options{.block = 48, .threads = sync::thread_cached}>();
}

} // namespace
