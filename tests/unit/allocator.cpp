#include "../support/sources.hpp"

#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/pool.hpp>

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <scoped_allocator>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace {

using namespace mallard::testing;
using mallard::allocator;
using mallard::arena;
using mallard::layout;
using mallard::ref;

/// An allocator over the heap that records its requests.
struct recorder {
    std::vector<layout> allocated, deallocated;

    void* allocate(layout l)
    {
        void* const block = try_allocate(l);
        return block != nullptr ? block : throw std::bad_alloc();
    }
    void* try_allocate(layout l) noexcept
    {
        allocated.push_back(l);
        return mallard::default_heap().try_take(l).data;
    }
    void deallocate(void* p, layout l) noexcept
    {
        deallocated.push_back(l);
        mallard::default_heap().give({p, l.bytes, l.align});
    }
};
static_assert(mallard::block_allocator<recorder>);

template <class T>
using from_arena = allocator<T, arena<>>;
template <class T>
using arena_vector = std::vector<T, from_arena<T>>;
using arena_string = std::basic_string<char, std::char_traits<char>, from_arena<char>>;
template <class Allocator, class T>
concept constructs = requires(Allocator from, T* at) { from.construct(at); };
using traits = std::allocator_traits<from_arena<int>>;

static_assert(sizeof(from_arena<int>) == sizeof(void*));
static_assert(std::is_trivially_copyable_v<from_arena<int>>);
static_assert(std::is_default_constructible_v<from_arena<int>> ==
              mallard::detail::compiles_default_allocators);
static_assert(std::is_nothrow_constructible_v<from_arena<long>, from_arena<int>>);
static_assert(!std::is_constructible_v<from_arena<int>, allocator<int, recorder>>);
static_assert(std::same_as<traits::rebind_alloc<long>, from_arena<long>>);
static_assert(std::same_as<from_arena<int>::size_type, std::size_t>);
static_assert(std::same_as<from_arena<int>::difference_type, std::ptrdiff_t>);
static_assert(!traits::is_always_equal::value);
static_assert(!traits::propagate_on_container_copy_assignment::value);
static_assert(!traits::propagate_on_container_move_assignment::value);
static_assert(!traits::propagate_on_container_swap::value);
using vector_in_arena = std::vector<int, from_arena<int>>;
static_assert(std::is_nothrow_move_constructible_v<vector_in_arena>);
static_assert(!std::is_nothrow_move_assignable_v<vector_in_arena>, "it may take blocks");

TEST(allocator, is_equal_to_allocators_of_any_type_over_the_same_resource)
{
    arena<> a, b;
    EXPECT_TRUE(from_arena<int>(a) == from_arena<int>(a));
    EXPECT_TRUE(from_arena<int>(a) == from_arena<char>(a));
    EXPECT_TRUE(from_arena<int>(a) != from_arena<int>(b));
    EXPECT_TRUE(from_arena<int>(a) != from_arena<char>(b));
    EXPECT_EQ(&from_arena<int>(from_arena<char>(a)).resource(), &a);
}

TEST(allocator, allocates_and_frees_with_the_layout_of_its_type)
{
    struct alignas(64) wide {
        char bytes[100];
    };
    recorder r;
    allocator<wide, recorder> from(r);
    from.deallocate(from.allocate(3), 3);
    from.deallocate(from.allocate(0), 0);
    EXPECT_EQ(r.allocated, (std::vector<layout>{{384, 64}, {0, 64}}));
    EXPECT_EQ(r.deallocated, r.allocated);
}

TEST(allocator, fails_for_more_objects_than_the_address_space_holds)
{
    arena<> a;
    from_arena<double> from(a);
    for (std::size_t const count : {SIZE_MAX, SIZE_MAX / 8 + 2, SIZE_MAX / 8, SIZE_MAX / 16 + 1})
        EXPECT_THROW(std::ignore = from.allocate(count), std::bad_alloc);
    EXPECT_EQ(a.stats().bytes_taken, 0u);
}

TEST(allocator, is_passed_to_elements_that_accept_an_allocator)
{
    arena<> a;
    arena_vector<arena_vector<arena_string>> v(a);
    v.emplace_back(2);
    v.back().emplace_back("text");
    v.emplace_back();
    v.resize(3);
    for (auto const& inner : v) {
        EXPECT_EQ(&inner.get_allocator().resource(), &a);
        for (auto const& text : inner)
            EXPECT_EQ(&text.get_allocator().resource(), &a);
    }
}

TEST(allocator, can_be_given_as_an_arena_when_an_element_is_constructed)
{
    arena<> a, other;
    arena_vector<arena_string> v(a);
    v.emplace_back("text", a);
    v.emplace_back("text", from_arena<char>(a));
    v.emplace_back("text", other); // the arguments decide, as in a constructor
    v.emplace_back("text");
    EXPECT_EQ(&v[0].get_allocator().resource(), &a);
    EXPECT_EQ(&v[2].get_allocator().resource(), &other);
    EXPECT_EQ(&v[3].get_allocator().resource(), &a);
    using entry = std::pair<const int, arena_string>;
    std::map<int, arena_string, std::less<>, from_arena<entry>> names(a);
    names.emplace(std::piecewise_construct, std::tuple(1),
                  std::tuple<const char*, arena<>&>("x", a));
    EXPECT_EQ(names.at(1), "x");
}

TEST(allocator, is_passed_into_pairs_and_tuples)
{
    arena<> a;
    using nested = std::pair<int, std::pair<arena_string, arena_vector<int>>>;
    arena_vector<nested> pairs(a);
    pairs.resize(1);
    pairs.emplace_back();
    pairs.emplace_back(1, std::pair<const char*, std::size_t>("text", 3));
    EXPECT_EQ(pairs.back().second.first, "text");
    for (auto const& [number, inner] : pairs) {
        EXPECT_EQ(&inner.first.get_allocator().resource(), &a);
        EXPECT_EQ(&inner.second.get_allocator().resource(), &a);
    }
    arena_vector<std::tuple<int, arena_string>> tuples(a);
    tuples.emplace_back(1, arena_string("text", a));
    EXPECT_EQ(&std::get<1>(tuples.back()).get_allocator().resource(), &a);
    EXPECT_EQ(std::get<1>(tuples.back()), "text");
}

TEST(allocator, is_passed_to_values_that_a_map_constructs)
{
    arena<> a;
    using value = std::pair<const arena_string, arena_vector<arena_string>>;
    std::map<arena_string, arena_vector<arena_string>, std::less<>, from_arena<value>> m(a);
    m[arena_string("key", a)].emplace_back("value");
    m.try_emplace(arena_string("other", a), 3);
    for (auto const& [key, values] : m) {
        EXPECT_EQ(&key.get_allocator().resource(), &a);
        EXPECT_EQ(&values.get_allocator().resource(), &a);
        EXPECT_EQ(&values.front().get_allocator().resource(), &a);
    }
}

TEST(allocator, converts_a_value_to_a_pair_once_when_a_map_inserts_it)
{
    struct entry {
        int key;
        operator std::pair<const int, int>() && { return {std::exchange(key, 0), 7}; }
        operator std::pair<const arena_string, int>() const
        {
            return {arena_string("text", *from), key};
        }
        arena<>* from = nullptr;
    };
    arena<> a;
    std::map<int, int, std::less<>, from_arena<std::pair<const int, int>>> plain(a);
    plain.insert(entry{1});
    EXPECT_EQ(plain.at(1), 7);
    using value = std::pair<const arena_string, int>;
    std::map<arena_string, int, std::less<>, from_arena<value>> wanting(a);
    wanting.insert(entry{1, &a});
    EXPECT_EQ(&wanting.begin()->first.get_allocator().resource(), &a);
    EXPECT_EQ(wanting.begin()->second, 1);
}

TEST(allocator, does_not_affect_elements_without_an_allocator)
{
    struct plain {
        int value = 0;
    };
    static_assert(!constructs<from_arena<plain>, plain> && !constructs<from_arena<int>, int>);
    static_assert(constructs<from_arena<arena_string>, arena_string>);
    using entry = std::pair<const int, plain>;
    static_assert(!constructs<from_arena<entry>, entry>, "a pair of them is one too");
    arena<> a;
    arena_vector<std::string> v(a);
    v.emplace_back("std::string takes another allocator, and keeps it");
    EXPECT_EQ(v.front().size(), 49u);
}

TEST(allocator, is_not_propagated_by_assignment_or_swap)
{
    arena<> a, b;
    arena_vector<int> in_a({1, 2, 3}, a);
    arena_vector<int> in_b({4, 5}, b);
    arena_vector<int> const copy = in_a;
    EXPECT_EQ(&copy.get_allocator().resource(), &a) << "a copy draws from the same";

    in_b = in_a;
    EXPECT_EQ(&in_b.get_allocator().resource(), &b);
    EXPECT_EQ(in_b, in_a);
    in_b = std::move(in_a);
    EXPECT_EQ(&in_b.get_allocator().resource(), &b);
    EXPECT_EQ(in_b, (arena_vector<int>({1, 2, 3}, b)));

    int const* const first = in_b.data();
    arena_vector<int> const moved = std::move(in_b);
    EXPECT_EQ(&moved.get_allocator().resource(), &b);
    EXPECT_EQ(moved.data(), first) << "moved within one arena, nothing is copied";
}

TEST(allocator, leaves_the_blocks_of_a_container_in_an_arena_until_reset)
{
    counting_source heap;
    arena<ref<counting_source>> a(heap);
    {
        std::vector<int, allocator<int, arena<ref<counting_source>>>> v(a);
        v.push_back(1);
    }
    EXPECT_EQ(a.stats().bytes_live, sizeof(int)) << "although its only block was the last";
    a.reset();
    EXPECT_EQ(a.stats().bytes_live, 0u);
}

TEST(allocator, allocates_nodes_and_tables_of_a_container_from_one_pool)
{
    counting_source heap;
    using node_pool = mallard::pool<ref<counting_source>>;
    node_pool nodes(64, 0, heap);
    using map = std::unordered_map<int, int, std::hash<int>, std::equal_to<>,
                                   allocator<std::pair<const int, int>, node_pool>>;
    {
        map m(nodes);
        for (int i = 0; i < 1000; ++i)
            m[i] = -i;
        for (int i = 0; i < 1000; i += 2)
            m.erase(i);
        for (int i = 1; i < 1000; i += 2)
            EXPECT_EQ(m.at(i), -i);
        EXPECT_EQ(nodes.stats().blocks_live, 501u) << "and a table";
    }
    EXPECT_EQ(nodes.stats().blocks_live, 0u);
}

TEST(allocator, serves_shared_pointers)
{
    recorder r;
    {
        auto const shared = std::allocate_shared<std::string>(allocator<int, recorder>(r), "text");
        EXPECT_EQ(*shared, "text");
        EXPECT_EQ(r.allocated.size(), 1u);
    }
    EXPECT_EQ(r.deallocated, r.allocated);
}

// --- std::scoped_allocator_adaptor

template <class T>
using recorded = allocator<T, recorder>;
using recorded_string = std::basic_string<char, std::char_traits<char>, recorded<char>>;
using recorded_strings = std::vector<recorded_string, recorded<recorded_string>>;
const char* const long_text = "a text that is too long to be kept inside of the string itself";

TEST(allocator, lets_a_scoped_allocator_adaptor_choose_the_allocator_of_elements)
{
    recorder outer, inner;
    using adaptor = std::scoped_allocator_adaptor<recorded<recorded_strings>, recorded<char>>;
    std::vector<recorded_strings, adaptor> all(adaptor(outer, inner));
    all.emplace_back();
    all.emplace_back(3);
    for (recorded_string& text : all.back())
        text = long_text;
    all.push_back(all.back());
    all.back().emplace_back(long_text);
    for (recorded_strings const& strings : all) {
        EXPECT_EQ(&strings.get_allocator().resource(), &inner);
        for (recorded_string const& text : strings) {
            EXPECT_EQ(text, long_text);
            EXPECT_EQ(&text.get_allocator().resource(), &inner);
        }
    }
    EXPECT_EQ(&all.get_allocator().outer_allocator().resource(), &outer);
}

TEST(allocator, lets_a_scoped_allocator_adaptor_reach_the_pairs_of_a_map)
{
    recorder outer, inner;
    using value = std::pair<const recorded_string, recorded_strings>;
    using adaptor = std::scoped_allocator_adaptor<recorded<value>, recorded<char>>;
    std::map<recorded_string, recorded_strings, std::less<>, adaptor> all{adaptor(outer, inner)};
    recorded_string const key(long_text, recorded<char>(outer));
    all[key].emplace_back(long_text);
    all.emplace(key, recorded_strings(recorded<recorded_string>(outer)));
    all.emplace(recorded_string("another", recorded<char>(outer)),
                recorded_strings(2, key, recorded<recorded_string>(outer)));
    EXPECT_EQ(all.size(), 2u);
    for (auto const& [text, strings] : all) {
        EXPECT_EQ(&text.get_allocator().resource(), &inner);
        EXPECT_EQ(&strings.get_allocator().resource(), &inner);
    }

    using number = std::pair<const int, int>;
    using plain = std::scoped_allocator_adaptor<recorded<number>, recorded<char>>;
    std::map<int, int, std::less<>, plain> numbers{plain(outer, inner)};
    numbers[1] = 2;
    EXPECT_EQ(numbers.at(1), 2);
}

TEST(allocator, lets_a_scoped_allocator_adaptor_of_one_allocator_serve_all_levels)
{
    recorder all;
    using adaptor = std::scoped_allocator_adaptor<recorded<recorded_string>>;
    std::vector<recorded_string, adaptor> strings{adaptor(recorded<recorded_string>(all))};
    strings.emplace_back(long_text);
    strings.resize(5);
    EXPECT_EQ(&strings.front().get_allocator().resource(), &all);
    EXPECT_EQ(strings.front(), long_text);
}

} // namespace
