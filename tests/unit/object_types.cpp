// The types of objects that an object_pool can hold, and the sources it can use.
#include "../support/census.hpp"
#include "../support/sources.hpp"

#include <mallard/arena.hpp>
#include <mallard/object_pool.hpp>
#include <mallard/pages.hpp>
#include <mallard/sync.hpp>

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace {

using namespace mallard::testing;
using namespace mallard;

/// Checks that objects are aligned and do not overlap, and that their slots are used again.
template <class Pool, class... Args>
void expect_service(Pool& objects, Args&&... args)
{
    using T = typename Pool::value_type;
    for (int round = 0; round < 2; ++round) {
        std::vector<T*> all(30);
        objects.make_batch(all, args...);
        std::set<std::uintptr_t> places;
        for (T* const one : all) {
            auto const at = reinterpret_cast<std::uintptr_t>(one);
            EXPECT_EQ(at % alignof(T), 0U);
            auto const after = places.insert(at).first;
            EXPECT_TRUE(after == places.begin() || at - *std::prev(after) >= sizeof(T));
        }
        EXPECT_EQ(places.size(), all.size());
        objects.destroy_batch(all);
        EXPECT_TRUE(objects.make(args...));
        EXPECT_EQ(objects.stats().blocks_live, 0U);
    }
}

template <class T, class... Args>
void expect_service_of(Args&&... args)
{
    object_pool<T> plain;
    expect_service(plain, args...);
    rc_pool<T> shared;
    expect_service(shared, args...);
    object_pool<T, default_heap, object_pool_options{.grow = growth::none(1 << 23)}> single;
    expect_service(single, args...);
}

template <std::size_t Align>
struct alignas(Align) aligned {
    char c = 'a';
};
struct huge {
    std::array<char, 100 << 10> bytes;
};
struct empty {};
struct aggregate {
    int a;
    const char* b;
    std::string c;
};
struct jealous {
    jealous* operator&() = delete;
    static void* operator new(std::size_t) = delete;
    static void operator delete(void*) = delete;
    int value = 3;
};
struct move_only {
    explicit move_only(std::unique_ptr<int> p) : owned(std::move(p)) {}
    std::unique_ptr<int> owned;
};

TEST(object_types, may_be_of_any_size_and_alignment)
{
    expect_service_of<char>('x');
    expect_service_of<aligned<64>>();
    expect_service_of<aligned<4096>>();
    expect_service_of<huge>();
    expect_service_of<empty>();
}

TEST(object_types, may_be_immovable_or_have_deleted_operators)
{
    expect_service_of<jealous>();
    rc_pool<jealous> shared;
    auto const one = shared.make_rc();
    EXPECT_EQ(shared.share(*one)->value, 3);

    census people;
    object_pool<citizen> immovable;
    EXPECT_EQ(immovable.make(people, 4)->value, 4);
    object_pool<move_only> movable;
    EXPECT_EQ(*movable.make(std::make_unique<int>(5))->owned, 5);
}

TEST(object_types, may_be_aggregates)
{
    object_pool<aggregate> all;
    auto const one = all.make(1, "two", "a string that is on the heap");
    EXPECT_EQ(one->a, 1);
    EXPECT_EQ(one->c.size(), 28U);
    EXPECT_EQ(all.make(1)->b, nullptr);
}

TEST(object_types, keep_their_value_even_if_they_have_one_byte)
{
    object_pool<unsigned char> bytes;
    EXPECT_EQ(*bytes.make(static_cast<unsigned char>(0xab)), 0xab);
}

template <object_pool_options Options, class T>
std::size_t bytes_beside(const T& value)
{
    object_pool<T, default_heap, Options> one;
    auto const box = one.make(value);
    return one.stats().bytes_live - sizeof(T);
}

TEST(object_types, need_the_documented_bytes_in_addition_to_the_object)
{
    constexpr growth one_step = growth::none(4096);
    EXPECT_EQ(bytes_beside<object_pool_options{}>(1L), 0U);
    EXPECT_EQ(bytes_beside<object_pool_options{}>('c'), 0U);
    EXPECT_EQ(bytes_beside<object_pool_options{.counts = counts::local}>(1L), 8U);
    EXPECT_EQ(bytes_beside<object_pool_options{.grow = one_step}>(1L), 8U);
    EXPECT_EQ((bytes_beside<object_pool_options{.counts = counts::local, .grow = one_step}>(1L)),
              16U);
    EXPECT_EQ(bytes_beside<object_pool_options{.counts = counts::local}>(aligned<64>()), 64U);
}

// --- sources

constexpr object_pool_options any_one_step{.counts = counts::local, .grow = growth::none(1)};
constexpr std::size_t bytes = object_pool<citizen, null, any_one_step>::bytes_for(40);
constexpr object_pool_options fixed{.counts = counts::local, .grow = growth::none(bytes)};

// Initialised at compile time.
constinit object_pool<long> in_static_memory;
constinit object_pool<citizen, buffer<bytes>, fixed> inside;
constinit arc_pool<long> of_all_threads;

TEST(object_types, may_be_constructed_in_a_static_pool)
{
    census people;
    std::vector<decltype(inside)::rc> all;
    for (int i = 0; i < 40; ++i)
        all.push_back(inside.make_rc(people, i));
    EXPECT_GE(all[0].get(), static_cast<void*>(&inside));
    EXPECT_LT(all[39].get(), static_cast<void*>(&inside + 1));
    while (auto more = inside.try_make_rc(people))
        all.push_back(std::move(more));
    EXPECT_LE(all.size(), 42U);
    EXPECT_THROW(std::ignore = inside.make(people), std::bad_alloc);
    all.clear();
    EXPECT_EQ(*in_static_memory.make(5L), 5);
    EXPECT_EQ(*of_all_threads.make_arc(6L), 6);
    inside.release();
    in_static_memory.release();
    of_all_threads.release();
}

TEST(object_types, may_be_constructed_in_the_memory_of_any_source)
{
    census people;
    {
        arena<> scratch;
        object_pool<citizen, ref<arena<>>> objects(scratch);
        expect_service(objects, people);
    }
    {
        object_pool<citizen, arena<>> objects;
        expect_service(objects, people);
        auto const leaked = objects.make(people).leak();
        objects.release();
        EXPECT_FALSE(people.has(leaked));
    }
    {
        object_pool<citizen, pages<>> objects;
        expect_service(objects, people);
    }
    {
        failing_resource upstream;
        object_pool<citizen, pmr_source> objects(&upstream);
        upstream.source.fail_at(1, 2);
        EXPECT_THROW(std::ignore = objects.make(people), refusal) << "the exception of the source";
        expect_service(objects, people);
    }
}

} // namespace
