#include "../support/counted_new.hpp"
#include "../support/sources.hpp"

#include <mallard/pmr.hpp>
#include <mallard/winked.hpp>

#include <gtest/gtest.h>

#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

/// A string type that owns no memory: its text is a view.
struct own_type {
    ~own_type() {} // not trivial, so the compiler cannot know that it frees nothing
};
template <>
inline constexpr bool mallard::enable_wink_out<own_type> = true;

namespace {

using namespace mallard::testing;
using mallard::arena;
using mallard::is_winkable;
using mallard::ref;
using mallard::winked;

using resource = mallard::pmr_resource<arena<>>;

// --- which types may be winked out -------------------------------------------

template <class T>
concept is_winkable_pmr = is_winkable<T, resource>;

template <class T>
using from_arena = mallard::allocator<T, arena<>>;
template <class T>
using arena_vector = std::vector<T, from_arena<T>>;
using arena_string = std::basic_string<char, std::char_traits<char>, from_arena<char>>;

template <class T>
concept is_winkable_typed = is_winkable<T, arena<>>;

using text = std::pmr::string;
using index = std::pmr::unordered_map<text, std::pmr::vector<text>>;

static_assert(is_winkable_pmr<int> && is_winkable_pmr<own_type> && is_winkable_pmr<text>);
static_assert(is_winkable_pmr<std::pmr::vector<text>> && is_winkable_pmr<index>);
static_assert(is_winkable_pmr<std::pmr::vector<std::pair<text, std::tuple<int, text>>>>);
static_assert(is_winkable_pmr<std::pmr::vector<std::array<int, 3>>>);
static_assert(is_winkable_pmr<std::pmr::vector<own_type>>);
static_assert(is_winkable<std::pmr::vector<text>, std::pmr::memory_resource>);
static_assert(is_winkable_typed<arena_vector<arena_string>>);
static_assert(is_winkable_typed<arena_vector<std::array<arena_string, 2>>>);

static_assert(!is_winkable_pmr<std::string> && !is_winkable_pmr<std::vector<int>>);
static_assert(!is_winkable_pmr<std::pmr::vector<std::string>>);
static_assert(!is_winkable_pmr<std::pmr::vector<std::pmr::vector<std::string>>>);
static_assert(!is_winkable_pmr<std::pmr::map<text, std::string>>);
static_assert(!is_winkable_pmr<std::pmr::map<std::string, text>>);
static_assert(!is_winkable_pmr<std::pmr::vector<std::pair<int, std::string>>>);
static_assert(!is_winkable_pmr<std::pmr::vector<std::tuple<text, std::string>>>);
static_assert(!is_winkable_pmr<std::pmr::vector<std::unique_ptr<int>>>);
static_assert(!is_winkable_pmr<std::pmr::list<std::shared_ptr<int>>>);
static_assert(!is_winkable_pmr<std::pmr::vector<std::array<std::string, 2>>>);
static_assert(!is_winkable_pmr<std::pmr::vector<std::array<text, 2>>>, "they would use the heap");
static_assert(!is_winkable_pmr<std::pmr::set<int, std::function<bool(int, int)>>>);
static_assert(!is_winkable_pmr<std::pmr::unordered_set<int, std::function<std::size_t(int)>>>);
static_assert(!is_winkable_typed<arena_vector<std::string>> && !is_winkable_typed<text>);
static_assert(!is_winkable<arena_vector<int>, arena<mallard::pmr_source>>, "another arena's");
static_assert(!is_winkable_pmr<arena_vector<int>>);

// --- every container ----------------------------------------------------------

struct abstract_base {
    using resource_type = resource;
    template <class T>
    using allocator = std::pmr::polymorphic_allocator<T>;
};
struct type_parameter {
    using resource_type = arena<>;
    template <class T>
    using allocator = from_arena<T>;
};

/// All standard containers, with strings that are too long for the small-string optimisation.
template <class Binding>
struct containers {
    template <class T>
    using allocator = typename Binding::template allocator<T>;
    using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;
    using entry = std::pair<const string, string>;
    using less = std::less<>;
    struct hash {
        std::size_t operator()(const string& s) const { return std::hash<std::string_view>()(s); }
    };
    using equal = std::equal_to<>;
    using strings = allocator<string>;
    using entries = allocator<entry>;

    using sequences = std::tuple<
        std::vector<string, strings>, std::deque<string, strings>, std::list<string, strings>,
        std::set<string, less, strings>, std::multiset<string, less, strings>,
        std::unordered_set<string, hash, equal, strings>,
        std::unordered_multiset<string, hash, equal, strings>, std::forward_list<string, strings>>;
    using maps = std::tuple<std::map<string, string, less, entries>,
                            std::multimap<string, string, less, entries>,
                            std::unordered_map<string, string, hash, equal, entries>,
                            std::unordered_multimap<string, string, hash, equal, entries>>;
};

template <class Binding>
class winked_container : public ::testing::Test {
public:
    using resource_type = typename Binding::resource_type;
    using string = typename containers<Binding>::string;
    static constexpr int count = 500;

    template <class... C, class Add>
    void each(std::tuple<C...>*, Add add)
    {
        (check<C>(add), ...);
    }

    template <class C, class Add>
    void check(Add add)
    {
        std::size_t const before = heap.live();
        std::size_t taken = 0;
        {
            resource_type memory;
            winked<C> c(memory);
            taken = heap.taken;
            for (int i = 0; i < count; ++i)
                add(*c, string(static_cast<std::size_t>(50 + i), 'x', c->get_allocator()));
            EXPECT_EQ(std::distance(c->begin(), c->end()), count);
            EXPECT_LE(heap.taken - taken, 12u) << "chunks of the arena, nothing else";
            memory.reset();
            winked<C> again(memory);
            add(*again, string("text", again->get_allocator()));
        }
        EXPECT_EQ(heap.live(), before);
    }
};

using bindings = ::testing::Types<type_parameter, abstract_base>;
TYPED_TEST_SUITE(winked_container, bindings);

TYPED_TEST(winked_container, leaks_no_memory)
{
    auto const add = [](auto& c, auto&& value) {
        if constexpr (requires { c.insert(value); })
            c.insert(std::move(value));
        else
            c.emplace_front(std::move(value));
    };
    auto const push = [&](auto& c, auto&& value) {
        if constexpr (requires { c.push_back(value); })
            c.push_back(std::move(value));
        else
            add(c, std::move(value));
    };
    auto const map = [](auto& c, auto&& value) { c.emplace(value, value); };
    this->each(static_cast<typename containers<TypeParam>::sequences*>(nullptr), push);
    this->each(static_cast<typename containers<TypeParam>::maps*>(nullptr), map);
}

// --- the handle ---------------------------------------------------------------

TEST(winked, stores_the_container_itself_in_the_resource)
{
    counting_source source;
    mallard::pmr_resource<arena<ref<counting_source>>> memory(source);
    winked<std::pmr::vector<text>> const words(memory);
    EXPECT_TRUE(source.holds(words.get()));
    words->emplace_back(100, 'x');
    EXPECT_TRUE(source.holds(words->data()) && source.holds(words->front().data()));
    EXPECT_EQ((*words)[0].size(), 100u);
}

TEST(winked, forwards_arguments)
{
    resource memory;
    winked<std::pmr::vector<text>> const three(memory, 3u, "x");
    EXPECT_EQ(three->size(), 3u);
    std::pmr::vector<text> const source{"a", "b"};
    winked<std::pmr::vector<text>> const copy(memory, source);
    EXPECT_EQ(*copy, source);
    EXPECT_EQ(copy->get_allocator().resource(), &memory);
    winked<int> const number(memory, 7);
    EXPECT_EQ(*number, 7);
    using pair = std::pair<text, int>;
    winked<pair> const both(memory, "text", 1);
    EXPECT_EQ(both->first.get_allocator().resource(), &memory);
}

TEST(winked, refers_to_the_same_container_after_a_copy)
{
    resource memory;
    winked<std::pmr::vector<int>> first(memory);
    winked<std::pmr::vector<int>> second(first); // from a non-const lvalue
    auto third = second;
    third->push_back(1);
    EXPECT_EQ(first->size(), 1u);
    EXPECT_EQ(first.get(), third.get());
    static_assert(sizeof first == sizeof(void*));
    static_assert(std::is_trivially_copyable_v<winked<int>>);
}

TEST(winked, works_with_any_memory_resource)
{
    std::pmr::monotonic_buffer_resource standard;
    winked<std::pmr::vector<int>> const in_standard(standard, 100u);
    std::pmr::memory_resource& base = standard;
    winked<std::pmr::vector<int>> const in_base(base, 100u);
    EXPECT_EQ(in_base->get_allocator().resource(), &standard);

    mallard::multipool<> pools;
    using from_pools = mallard::allocator<int, mallard::multipool<>>;
    winked<std::list<int, from_pools>> const in_pools(pools, 100u);
    EXPECT_EQ(pools.stats().blocks_live, 101u);
}

TEST(winked, frees_its_block_when_the_constructor_throws)
{
    mallard::multipool<> pools;
    using from_pools = mallard::allocator<int, mallard::multipool<>>;
    using vector = std::vector<int, from_pools>;
    EXPECT_THROW(winked<vector>(pools, SIZE_MAX / 4), std::length_error);
    EXPECT_EQ(pools.stats().blocks_live, 0u);
}

} // namespace
