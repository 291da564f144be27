#include "../../../../tests/support/counted_new.hpp"

#include <bench/demo/strategy.hpp>

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using namespace mallard::demo;
using namespace mallard::testing;
using mallard::arena;
using mallard::multipool;
using mallard::pmr_resource;

// --- the table of strategies ----------------------------------------------------------------

template <int Number, binding Binding, bool WinkOut, class Resource>
constexpr bool is_strategy =
    strategy<Number>::number == Number && strategy<Number>::binding == Binding &&
    strategy<Number>::wink_out == WinkOut &&
    std::same_as<typename strategy<Number>::resource_type, Resource>;

constexpr auto typed = binding::type_parameter;
constexpr auto based = binding::abstract_base;
using from_arena = multipool<arena<>>;

static_assert(is_strategy<1, typed, false, strategy<1>::global>);
static_assert(is_strategy<2, based, false, strategy<2>::global>);
static_assert(is_strategy<3, typed, false, arena<>>);
static_assert(is_strategy<4, typed, true, arena<>>);
static_assert(is_strategy<5, based, false, pmr_resource<arena<>>>);
static_assert(is_strategy<6, based, true, pmr_resource<arena<>>>);
static_assert(is_strategy<7, typed, false, multipool<>>);
static_assert(is_strategy<8, typed, true, multipool<>>);
static_assert(is_strategy<9, based, false, pmr_resource<multipool<>>>);
static_assert(is_strategy<10, based, true, pmr_resource<multipool<>>>);
static_assert(is_strategy<11, typed, false, from_arena>);
static_assert(is_strategy<12, typed, true, from_arena>);
static_assert(is_strategy<13, based, false, pmr_resource<from_arena>>);
static_assert(is_strategy<14, based, true, pmr_resource<from_arena>>);

static_assert(std::same_as<strategy<1>::allocator_type<int>, std::allocator<int>>);
static_assert(std::same_as<strategy<2>::allocator_type<int>, std::pmr::polymorphic_allocator<int>>);
static_assert(std::same_as<strategy<3>::allocator_type<int>, mallard::allocator<int, arena<>>>);
static_assert(std::same_as<strategy<6>::allocator_type<int>, std::pmr::polymorphic_allocator<int>>);
static_assert(
    std::same_as<strategy<12>::allocator_type<int>, mallard::allocator<int, multipool<arena<>>>>);

template <int Number>
concept names_a_strategy = requires { typename strategy<Number>; };
static_assert(names_a_strategy<1> && names_a_strategy<14>);
static_assert(!names_a_strategy<0> && !names_a_strategy<15>);

TEST(strategy, lists_fourteen_kinds_in_order_and_describes_each)
{
    int count = 0;
    for_each_strategy([&](auto s) {
        using S = decltype(s);
        EXPECT_EQ(S::number, ++count);
        EXPECT_EQ(S::name, "AS" + std::to_string(count));
        std::string const words(S::words);
        auto const says = [&](const char* word) { return words.find(word) != words.npos; };
        EXPECT_EQ(says("wink-out"), S::wink_out) << words;
        EXPECT_EQ(says("abstract base"), S::binding == based) << words;
        EXPECT_EQ(says("type parameter"), S::binding == typed) << words;
        EXPECT_EQ(says("heap"), count <= 2) << words;
        EXPECT_EQ(says("multipool"), count >= 7) << words;
        EXPECT_EQ(says("arena"), count >= 11 || (count >= 3 && count <= 6)) << words;
    });
    EXPECT_EQ(count, 14);
}

TEST(strategy, as2_uses_the_new_delete_resource_whatever_the_default_resource_is)
{
    auto* const before = std::pmr::set_default_resource(std::pmr::null_memory_resource());
    strategy<2>::resource_type memory;
    EXPECT_EQ(strategy<2>::allocator<int>(memory).resource(), std::pmr::new_delete_resource());
    std::pmr::set_default_resource(before);
}

// --- the same answer under every strategy, and no leak -------------------------------

template <class S>
struct types {
    template <class T>
    using allocator = typename S::template allocator_type<T>;
    using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;
    template <class T>
    using vector = std::vector<T, allocator<T>>;
    template <class T>
    using list = std::list<T, allocator<T>>;
    struct hash {
        std::size_t operator()(const string& s) const { return std::hash<std::string_view>()(s); }
    };
    template <class V>
    using unordered =
        std::unordered_map<string, V, hash, std::equal_to<>, allocator<std::pair<const string, V>>>;
    template <class V>
    using ordered = std::map<string, V, std::less<>, allocator<std::pair<const string, V>>>;
};

/// Builds an index in nested containers, and erases some elements while building it.
template <class S>
std::size_t answer(typename S::resource_type& memory)
{
    using t = types<S>;
    using index = typename t::template ordered<typename t::template unordered<
        typename t::template list<typename t::template vector<int>>>>;
    return S::template run<index>(memory, [](index& outer) {
        std::size_t sum = 0;
        auto const name = [&](int i) {
            typename t::string text(outer.get_allocator());
            text.append("a name that is too long for the object itself ");
            text.append(std::to_string(i));
            return text;
        };
        for (int i = 0; i < 2000; ++i) {
            auto& inner = outer[name(i % 7)];
            auto& lists = inner[name(i % 31)];
            lists.emplace_back(static_cast<std::size_t>(i % 5), i);
            if (i % 3 == 0)
                lists.pop_front();
            if (i % 101 == 0)
                inner.erase(name(i % 31));
        }
        for (auto const& [key, inner] : outer)
            for (auto const& [word, lists] : inner)
                for (auto const& numbers : lists)
                    for (int const number : numbers)
                        sum += static_cast<std::size_t>(number) * key.size() + word.size();
        return sum;
    });
}

TEST(strategy, gives_the_same_answer_under_all_fourteen_and_leaks_nothing)
{
    strategy<1>::resource_type plain;
    std::size_t const expected = answer<strategy<1>>(plain);
    EXPECT_NE(expected, 0u);
    for_each_strategy([&](auto s) {
        using S = decltype(s);
        std::size_t const before = heap.live();
        {
            typename S::resource_type memory;
            EXPECT_EQ(answer<S>(memory), expected) << S::name;
            EXPECT_EQ(answer<S>(memory), expected) << S::name << ", the second time";
        }
        EXPECT_EQ(heap.live(), before) << S::name;
    });
}

TEST(strategy, requests_only_chunks_from_the_heap_for_a_local_structure)
{
    for_each_strategy([](auto s) {
        using S = decltype(s);
        typename S::resource_type memory;
        std::size_t const before = heap.taken;
        answer<S>(memory);
        std::size_t const calls = heap.taken - before;
        EXPECT_EQ(calls > 2000, S::is_global) << S::name << ": " << calls;
        EXPECT_TRUE(calls < 300 || S::is_global) << S::name << ": " << calls;
    });
}

// --- destruction ------------------------------------------------------------------

struct witness {
    static inline int destroyed = 0;
    ~witness() { ++destroyed; }
};

} // namespace

template <>
inline constexpr bool mallard::enable_wink_out<witness> = true;

namespace {

TEST(strategy, destroys_elements_unless_it_winks_out)
{
    for_each_strategy([](auto s) {
        using S = decltype(s);
        using list = std::list<witness, typename S::template allocator_type<witness>>;
        typename S::resource_type memory;
        witness::destroyed = 0;
        S::template run<list>(memory, [](list& l) {
            for (int i = 0; i < 5; ++i)
                l.emplace_back();
        });
        EXPECT_EQ(witness::destroyed, S::wink_out ? 0 : 5) << S::name;
    });
}

TEST(strategy, releases_the_memory_when_the_work_throws)
{
    for_each_strategy([](auto s) {
        using S = decltype(s);
        using vector = std::vector<int, typename S::template allocator_type<int>>;
        typename S::resource_type memory;
        EXPECT_THROW(S::template run<vector>(memory,
                                             [](vector& v) {
                                                 v.resize(100'000);
                                                 throw 1;
                                             }),
                     int);
        if constexpr (S::wink_out) {
            EXPECT_EQ(memory.stats().bytes_taken, 0u) << S::name;
        }
    });
}

} // namespace
