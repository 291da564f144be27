#include "../support/sources.hpp"

#include <mallard/arena.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>

namespace {

using namespace mallard::testing;
using mallard::arena;
using mallard::ref;

using counted_arena = arena<ref<counting_source>>;
using log = std::vector<int>;

/// An object that records its destruction.
struct witness {
    log& destroyed;
    int number;
    witness(log& where, int n) : destroyed(where), number(n) {}
    witness(const witness&) = delete;
    ~witness() { destroyed.push_back(number); }
};

struct throws_on_construction {
    explicit throws_on_construction(int value) { throw value; }
    ~throws_on_construction() { ADD_FAILURE() << "it was never constructed"; }
    std::byte bytes[100];
};

TEST(arena_make, forwards_arguments_and_never_destroys)
{
    log destroyed;
    {
        arena<> a;
        witness& object = a.make<witness>(destroyed, 3);
        EXPECT_EQ(object.number, 3);
        EXPECT_EQ(a.make<std::unique_ptr<int>>(nullptr), nullptr);
        struct aggregate {
            int x, y;
        };
        EXPECT_EQ(a.make<aggregate>(1, 2).y, 2);
    }
    EXPECT_TRUE(destroyed.empty());
}

TEST(arena_own, destroys_objects_newest_first_when_the_arena_is_destroyed)
{
    log destroyed;
    {
        arena<> a;
        for (int i = 0; i < 1000; ++i)
            EXPECT_EQ(a.own<witness>(destroyed, i).number, i);
        arena<> b = std::move(a);
    }
    ASSERT_EQ(destroyed.size(), 1000u);
    EXPECT_TRUE(std::is_sorted(destroyed.begin(), destroyed.end(), std::greater()));
}

TEST(arena_own, destroys_objects_once_at_rewind_reset_or_release)
{
    log destroyed;
    arena<> a;
    a.own<witness>(destroyed, 1);
    auto const mark = a.mark();
    a.own<witness>(destroyed, 2);
    a.own<witness>(destroyed, 3);
    a.rewind(mark);
    EXPECT_EQ(destroyed, (log{3, 2}));
    a.rewind(mark);
    a.own<witness>(destroyed, 4);
    a.reset();
    EXPECT_EQ(destroyed, (log{3, 2, 4, 1}));
    a.own<witness>(destroyed, 5);
    a.release();
    a.release();
    EXPECT_EQ(destroyed, (log{3, 2, 4, 1, 5}));
}

TEST(arena_own, destroys_objects_and_runs_deferred_calls_newest_first)
{
    log destroyed;
    {
        arena<> a;
        a.defer([&] { destroyed.push_back(1); });
        a.own<witness>(destroyed, 2);
        a.defer(
            // The captured object must not leak if registering the function fails.
            [&, held = std::make_unique<int>(3)] { destroyed.push_back(*held); });
    }
    EXPECT_EQ(destroyed, (log{3, 2, 1}));
}

TEST(arena_own, uses_no_memory_for_trivial_destructors)
{
    arena<> a;
    auto* const first = &a.own<std::uint64_t>(1u);
    EXPECT_EQ(&a.own<std::uint64_t>(2u), first + 1);
}

TEST(arena_own, honours_the_alignment_of_the_object)
{
    struct alignas(256) wide {
        std::string text = "a string that is too long to be kept inside the object";
    };
    arena<> a;
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&a.own<wide>()) % 256, 0u);
}

TEST(arena_own, allows_destructors_that_use_the_arena)
{
    struct scribbler {
        arena<>& a;
        ~scribbler() { std::memset(a.allocate(5000), 1, 5000); }
    };
    arena<> a;
    auto const mark = a.mark();
    a.own<scribbler>(a);
    a.own<scribbler>(a);
    a.rewind(mark);
    EXPECT_EQ(a.stats().bytes_live, 0u);
    a.own<scribbler>(a);
    a.reset();
    EXPECT_EQ(a.stats().bytes_live, 0u);
    a.own<scribbler>(a);
}

TEST(arena_objects, leave_nothing_behind_when_a_constructor_throws)
{
    counting_source heap;
    counted_arena a(heap);
    auto* const before = static_cast<std::byte*>(a.allocate({8, 8}));
    EXPECT_THROW(a.make<throws_on_construction>(1), int);
    EXPECT_THROW(a.try_make<throws_on_construction>(1), int);
    EXPECT_THROW(a.own<throws_on_construction>(1), int);
    EXPECT_EQ(a.allocate({8, 8}), before + 8);
    a.reset();
}

TEST(arena_objects, leave_nothing_behind_when_an_array_element_throws)
{
    static int alive;
    static int left;
    struct third_throws {
        third_throws()
        {
            if (left-- == 0)
                throw 3;
            ++alive;
        }
        ~third_throws() { --alive; }
        int value = 0;
    };
    alive = 0;
    left = 2;
    arena<> a;
    auto* const before = static_cast<std::byte*>(a.allocate({8, 8}));
    EXPECT_THROW(a.make_array<third_throws>(5), int);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(a.allocate({8, 8}), before + 8);
}

TEST(arena_objects, leave_nothing_behind_when_a_deferred_function_throws_on_its_move)
{
    struct throws_on_move {
        throws_on_move() = default;
        throws_on_move(throws_on_move&&) { throw 4; }
        void operator()() const { ADD_FAILURE() << "it was never registered"; }
    };
    arena<> a;
    auto* const before = static_cast<std::byte*>(a.allocate({8, 8}));
    EXPECT_THROW(a.defer(throws_on_move()), int);
    EXPECT_EQ(a.allocate({8, 8}), before + 8);
}

TEST(arena_objects, are_made_completely_or_not_at_all_when_the_source_fails)
{
    constexpr mallard::arena_options one_block_a_chunk{.grow = mallard::growth::fixed(64)};
    for (std::size_t call = 1; call < 20; ++call) {
        log destroyed;
        log made;
        failing_source source;
        {
            arena<ref<failing_source>, one_block_a_chunk> a(source);
            // Two calls of the source fail: the chunk request, and a second request for half of the
            // bytes.
            source.fail_at(call, call + 1);
            for (int i = 0; i < 8; ++i) {
                try {
                    a.own<witness>(destroyed, i);
                    made.push_back(i);
                } catch (const std::bad_alloc&) {
                }
            }
        }
        std::reverse(made.begin(), made.end());
        EXPECT_EQ(destroyed, made);
    }
}

TEST(arena_objects, leak_no_memory_in_repeated_failed_attempts)
{
    std::byte memory[100];
    arena<mallard::null> a{std::span(memory)};
    log destroyed;
    struct large : witness {
        using witness::witness;
        std::byte bytes[100];
    };
    for (int i = 0; i < 100; ++i) {
        EXPECT_THROW(a.own<large>(destroyed, i), std::bad_alloc);
        EXPECT_THROW(a.defer([bytes = std::array<char, 100>()] { static_cast<void>(bytes); }),
                     std::bad_alloc);
    }
    EXPECT_EQ(a.allocate({100, 1}), memory);
}

} // namespace
