// Tests every standard container, with each binding, over every kind of allocator. Each container
// must behave as with std::allocator, allocate from one allocator only, follow the rules of copy,
// move and swap, and free all its memory.
#include "../support/sources.hpp"

#include <mallard/allocator.hpp>
#include <mallard/pmr.hpp>

#include <gtest/gtest.h>

#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

using namespace mallard::testing;
using mallard::layout;
using from_heap = mallard::ref<counting_source>;

/// A type-erased allocator, so that each container is compiled once for all kinds.
struct memory {
    virtual ~memory() = default;
    virtual void* allocate(layout l) = 0;
    virtual void* try_allocate(layout l) noexcept = 0;
    virtual void deallocate(void* block, layout l) noexcept = 0;
    virtual std::pmr::memory_resource& resource() = 0;
    virtual void release() = 0;

    counting_source heap;
};

template <class A, class Source = from_heap>
struct memory_of final : memory {
    void* allocate(layout l) override { return a.allocate(l); }
    void* try_allocate(layout l) noexcept override { return a.try_allocate(l); }
    void deallocate(void* block, layout l) noexcept override { a.deallocate(block, l); }
    std::pmr::memory_resource& resource() override { return a; }
    void release() override { a.release(); }

    mallard::pmr_resource<A> a{Source(heap)};
};

using arena = mallard::arena<from_heap>;
using multipool = mallard::multipool<from_heap>;
using pool = mallard::pool<from_heap, mallard::pool_options{.block = 64}>;

struct type_parameter {
    template <class T>
    using allocator = mallard::allocator<T, memory>;
    template <class T>
    static allocator<T> over(memory& from)
    {
        return from;
    }
    static constexpr bool copies_stay = true;
};

struct abstract_base {
    template <class T>
    using allocator = std::pmr::polymorphic_allocator<T>;
    template <class T>
    static allocator<T> over(memory& from)
    {
        return &from.resource();
    }
    static constexpr bool copies_stay = false;
};

template <class Binding>
class container : public ::testing::Test {
public:
    template <class T>
    using allocator = typename Binding::template allocator<T>;
    template <class C>
    static typename C::allocator_type over(memory& from)
    {
        return Binding::template over<typename C::value_type>(from);
    }

    /// Calls `f(one, another)` for each kind of allocator, and verifies that all memory is freed.
    template <class F>
    void each_memory(F f)
    {
        use(memory_of<arena>(), memory_of<arena>(), f);
        use(memory_of<multipool>(), memory_of<multipool>(), f);
        use(memory_of<pool>(), memory_of<pool>(), f);
        using nested = memory_of<mallard::multipool<arena>, arena>;
        use(nested(), nested(), f);
    }

    /// Applies the same random operations to `C` and to the container with std::allocator.
    template <class C, class Plain, class Step>
    void compare(Step step)
    {
        each_memory([step](memory& one, memory& another) {
            C ours(over<C>(one));
            Plain plain;
            std::mt19937 random(1), again(1);
            for (int i = 0; i < 600; ++i) {
                step(ours, random);
                step(plain, again);
                ASSERT_TRUE(std::equal(ours.begin(), ours.end(), plain.begin(), plain.end())) << i;
            }
            keep_the_rules(ours, another);
        });
    }

private:
    template <class F>
    static void use(memory&& one, memory&& another, F f)
    {
        f(one, another);
        one.release();
        another.release();
        EXPECT_EQ(one.heap.bytes() + another.heap.bytes(), 0u);
    }

    template <class C>
    static void keep_the_rules(const C& source, memory& another)
    {
        auto const its = source.get_allocator();
        auto const others = over<C>(another);
        C const copy = source;
        EXPECT_EQ(copy.get_allocator() == its, Binding::copies_stay);
        C there(others);
        there = source;
        EXPECT_TRUE(there.get_allocator() == others) << "copy assignment";
        EXPECT_TRUE(there == source && copy == source);

        there = C(source, its);
        EXPECT_TRUE(there.get_allocator() == others) << "move assignment";
        EXPECT_TRUE(there == source);
        C const moved = std::move(there);
        EXPECT_TRUE(moved.get_allocator() == others) << "a move takes it along";
        EXPECT_TRUE(moved == source && C(C(source, its), others) == source);

        C first(source, its), second(its);
        swap(first, second);
        EXPECT_TRUE(first.empty() && second == source);
    }
};

struct binding_names {
    template <class Binding>
    static std::string GetName(int)
    {
        return Binding::copies_stay ? "type_parameter" : "abstract_base";
    }
};
using bindings = ::testing::Types<type_parameter, abstract_base>;
TYPED_TEST_SUITE(container, bindings, binding_names);

template <class Binding, class K, class V>
using entries = typename Binding::template allocator<std::pair<const K, V>>;
using numbers = std::mt19937;

TYPED_TEST(container, vector_behaves_as_with_the_standard_allocator)
{
    using C = std::vector<int, typename TestFixture::template allocator<int>>;
    this->template compare<C, std::vector<int>>([](auto& v, numbers& random) {
        int const n = static_cast<int>(random() % 1000);
        auto const at = v.begin() + (v.empty() ? 0 : n % static_cast<int>(v.size()));
        switch (random() % 8) {
        case 0:
            return v.resize(static_cast<std::size_t>(n));
        case 1:
            return v.shrink_to_fit();
        case 2:
            return void(v.empty() || (v.erase(at), true));
        case 3:
            return void(v.insert(at, 17, n));
        case 4:
            return v.assign(static_cast<std::size_t>(n % 50), n);
        case 5:
            return v.reserve(static_cast<std::size_t>(2 * n));
        default:
            return v.push_back(n);
        }
    });
}

TYPED_TEST(container, vector_of_bool_behaves_as_with_the_standard_allocator)
{
    using C = std::vector<bool, typename TestFixture::template allocator<bool>>;
    this->template compare<C, std::vector<bool>>([](auto& v, numbers& random) {
        random() % 16 == 0 ? v.resize(random() % 500) : v.push_back(random() % 2 == 0);
    });
}

TYPED_TEST(container, string_behaves_as_with_the_standard_allocator)
{
    using C = std::basic_string<char, std::char_traits<char>,
                                typename TestFixture::template allocator<char>>;
    this->template compare<C, std::string>([](auto& s, numbers& random) {
        std::size_t const n = random() % 100;
        switch (random() % 6) {
        case 0:
            return void(s.insert(s.size() / 2, n, 'i'));
        case 1:
            return void(s.erase(s.size() / 3, n));
        case 2:
            return s.shrink_to_fit();
        case 3:
            return void(s.replace(0, std::min(s.size(), n), "replaced"));
        default:
            return void(s.append(n, static_cast<char>('a' + n % 26)));
        }
    });
}

TYPED_TEST(container, deque_behaves_as_with_the_standard_allocator)
{
    using C = std::deque<int, typename TestFixture::template allocator<int>>;
    this->template compare<C, std::deque<int>>([](auto& d, numbers& random) {
        int const n = static_cast<int>(random() % 1000);
        switch (random() % 6) {
        case 0:
            return d.push_front(n);
        case 1:
            return void(d.insert(d.end(), 200, n));
        case 2:
            return d.empty() ? void() : d.pop_front();
        case 3:
            return d.shrink_to_fit();
        default:
            return d.push_back(n);
        }
    });
}

TYPED_TEST(container, list_behaves_as_with_the_standard_allocator)
{
    using C = std::list<int, typename TestFixture::template allocator<int>>;
    this->template compare<C, std::list<int>>([](auto& l, numbers& random) {
        int const n = static_cast<int>(random() % 1000);
        switch (random() % 8) {
        case 0:
            return l.sort();
        case 1:
            return void(l.remove_if([n](int i) { return i % 7 == n % 7; }));
        case 2: {
            auto taken = std::remove_reference_t<decltype(l)>(l.get_allocator());
            taken.splice(taken.begin(), l, l.begin(),
                         std::next(l.begin(), static_cast<int>(l.size() / 2)));
            return l.splice(l.end(), taken);
        }
        case 3:
            return l.reverse();
        default:
            return l.push_back(n);
        }
    });
}

TYPED_TEST(container, forward_list_behaves_as_with_the_standard_allocator)
{
    using C = std::forward_list<int, typename TestFixture::template allocator<int>>;
    this->template compare<C, std::forward_list<int>>([](auto& l, numbers& random) {
        int const n = static_cast<int>(random() % 1000);
        random() % 5 == 0 ? void(l.remove_if([n](int i) { return i < n; })) : l.push_front(n);
    });
}

// Inserts and erases, and moves nodes to another container and back.
constexpr auto churn = [](auto& c, numbers& random) {
    int const key = static_cast<int>(random() % 500);
    auto other = std::remove_reference_t<decltype(c)>(c.get_allocator());
    auto const insert = [&](auto& into, int k) {
        if constexpr (requires {
                          into.emplace(k, k);
                          into.begin()->second;
                      })
            into.emplace(k, -k);
        else
            into.insert(k);
    };
    switch (random() % 8) {
    case 0:
    case 1:
        return void(c.erase(key));
    case 2:
        return void(c.empty() || (other.insert(c.extract(c.begin()->first)), true));
    default:
        return insert(c, key);
    }
};

TYPED_TEST(container, map_behaves_as_with_the_standard_allocator)
{
    using pairs = entries<TypeParam, int, int>;
    this->template compare<std::map<int, int, std::less<>, pairs>, std::map<int, int, std::less<>>>(
        churn);
    this->template compare<std::multimap<int, int, std::less<>, pairs>,
                           std::multimap<int, int, std::less<>>>(churn);
}

TYPED_TEST(container, set_behaves_as_with_the_standard_allocator)
{
    constexpr auto step = [](auto& s, numbers& random) {
        int const key = static_cast<int>(random() % 500);
        random() % 3 == 0 ? void(s.erase(key)) : void(s.insert(key));
    };
    using ints = typename TestFixture::template allocator<int>;
    this->template compare<std::set<int, std::less<>, ints>, std::set<int, std::less<>>>(step);
    this->template compare<std::multiset<int, std::less<>, ints>, std::multiset<int, std::less<>>>(
        step);
}

TYPED_TEST(container, unordered_map_behaves_as_with_the_standard_allocator)
{
    constexpr auto step = [](auto& m, numbers& random) {
        if (random() % 50 == 0)
            return m.rehash(random() % 3000);
        churn(m, random);
    };
    using pairs = entries<TypeParam, int, int>;
    using hash = std::hash<int>;
    this->template compare<std::unordered_map<int, int, hash, std::equal_to<>, pairs>,
                           std::unordered_map<int, int, hash, std::equal_to<>>>(step);
    this->template compare<std::unordered_multimap<int, int, hash, std::equal_to<>, pairs>,
                           std::unordered_multimap<int, int, hash, std::equal_to<>>>(step);
}

TYPED_TEST(container, passes_the_allocator_to_strings_in_a_map_of_vectors)
{
    using string = std::basic_string<char, std::char_traits<char>,
                                     typename TestFixture::template allocator<char>>;
    using strings = std::vector<string, typename TestFixture::template allocator<string>>;
    using map = std::map<int, strings, std::less<>, entries<TypeParam, int, strings>>;
    this->each_memory([](memory& one, memory&) {
        map m(TestFixture::template over<map>(one));
        for (int i = 0; i < 300; ++i)
            m[i % 20].emplace_back(static_cast<std::size_t>(i), 'x');
        for (auto const& [key, texts] : m)
            for (auto const& text : texts)
                ASSERT_TRUE(one.heap.holds(text.data())) << "the text, or the string it is in";
    });
}

} // namespace
