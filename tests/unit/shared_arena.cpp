// Tests a shared_arena that several threads use at the same time.
#include "../support/sources.hpp"

#include <mallard/pmr.hpp>
#include <mallard/shared_arena.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

using namespace mallard::testing;
using namespace mallard;

using arena_of_tests = shared_arena<ref<failing_source>>;

template <class F>
void in_threads(int count, F f)
{
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
        threads.emplace_back([&f, t] { f(t); });
    for (std::thread& t : threads)
        t.join();
}

TEST(shared_arena, never_gives_a_block_to_two_threads)
{
    failing_source heap;
    arena_of_tests arena{ref(heap)};
    in_threads(4, [&](int t) {
        std::vector<std::pair<unsigned char*, std::size_t>> blocks;
        for (std::size_t i = 0; i < 3000; ++i) {
            std::size_t const bytes = 1 + i * 7 % 200;
            std::size_t const align = std::size_t{1} << i % 7;
            auto* const p = static_cast<unsigned char*>(arena.allocate({bytes, align}));
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % align, 0U);
            std::memset(p, t, bytes);
            blocks.emplace_back(p, bytes);
        }
        for (auto [p, bytes] : blocks)
            for (std::size_t i = 0; i < bytes; ++i)
                ASSERT_EQ(p[i], t);
    });
    statistics const s = arena.stats();
    EXPECT_EQ(s.bytes_taken, heap.bytes());
    EXPECT_LE(s.bytes_live + s.bytes_idle, s.bytes_taken);
    arena.release();
    EXPECT_EQ(heap.bytes(), 0U);
    statistics const after = arena.stats();
    EXPECT_EQ(after, (statistics{.growths = after.growths, .refills = after.refills}));
}

TEST(shared_arena, lets_a_new_thread_use_the_chunk_of_an_exited_one)
{
    failing_source heap;
    arena_of_tests arena{ref(heap)};
    for (int i = 0; i < 200; ++i)
        in_threads(1, [&](int) { std::ignore = arena.allocate({16, 8}); });
    EXPECT_LE(heap.bytes(), 64U * 1024);
}

TEST(shared_arena, keeps_its_memory_at_reset)
{
    failing_source heap;
    arena_of_tests arena{ref(heap)};
    auto const fill = [&](int) {
        for (int i = 0; i < 1000; ++i)
            std::ignore = arena.allocate({100, 8});
    };
    in_threads(1, fill);
    std::size_t const bytes = heap.bytes();
    for (int round = 0; round < 10; ++round) {
        arena.reset();
        in_threads(1, fill);
    }
    EXPECT_EQ(heap.bytes(), bytes);
    arena.reset();
    arena.trim();
    EXPECT_LT(heap.bytes(), bytes);
}

TEST(shared_arena, destroys_owned_objects_of_all_threads_newest_first)
{
    std::string order;
    struct noisy {
        std::string& out;
        char name;
        noisy(std::string& to, char c) : out(to), name(c) {}
        ~noisy() { out += name; }
    };
    shared_arena<> arena;
    arena.own<noisy>(order, 'a');
    in_threads(1, [&](int) { arena.own<noisy>(order, 'b'); });
    arena.defer([&] { order += 'c'; });
    arena.reset();
    EXPECT_EQ(order, "cba");
    in_threads(1, [&](int) { arena.own<noisy>(order, 'd'); });
    arena.release();
    EXPECT_EQ(order, "cbad");
}

TEST(shared_arena, can_free_the_last_block_of_the_calling_thread)
{
    shared_arena<> arena;
    void* const first = arena.allocate({40, 8});
    arena.deallocate(first, {40, 8});
    EXPECT_EQ(arena.allocate({40, 8}), first);
    // This free has no effect, because another thread allocated `first`.
    in_threads(1, [&](int) { arena.deallocate(first, {40, 8}); });
    EXPECT_NE(arena.allocate({40, 8}), first);
}

TEST(shared_arena, fails_when_its_source_fails_and_leaks_nothing)
{
    failing_source heap;
    arena_of_tests arena{ref(heap)};
    in_threads(3, [&](int) {
        for (int i = 0; i < 500; ++i)
            std::ignore = arena.try_allocate({64, 8});
    });
    heap.fail_at(1, 1'000'000);
    in_threads(3, [&](int) {
        EXPECT_EQ(arena.try_allocate({10'000'000, 8}), nullptr);
        EXPECT_THROW(static_cast<void>(arena.allocate({10'000'000, 8})), std::bad_alloc);
    });
    heap.fail_at(1'000'000);
    in_threads(3, [&](int) { EXPECT_NE(arena.try_allocate({10'000'000, 8}), nullptr); });
    EXPECT_EQ(arena.stats().bytes_taken, heap.bytes());
}

TEST(shared_arena, serves_threads_for_which_no_separate_arena_can_be_allocated)
{
    buffer<20000> here; // has no room for a second arena once the first one has grown
    shared_arena<ref<buffer<20000>>, arena_options{.grow = growth::none(16000)}> arena{ref(here)};
    std::ignore = arena.allocate({8, 8});
    std::latch both(2);
    in_threads(2, [&](int) {
        // One of the two threads gets the built-in arena. That thread may have exited when the
        // other thread needs an arena.
        both.arrive_and_wait();
        EXPECT_NE(arena.try_allocate({100, 8}), nullptr);
    });
}

TEST(shared_arena, reports_statistics_while_other_threads_allocate)
{
    shared_arena<> arena;
    std::atomic<bool> done = false;
    std::thread asks([&] {
        while (!done) {
            statistics const s = arena.stats();
            EXPECT_LE(s.bytes_live + s.bytes_idle, s.bytes_taken);
        }
    });
    in_threads(2, [&](int) {
        for (int i = 0; i < 20000; ++i)
            arena.make<int>(i);
    });
    done = true;
    asks.join();
    EXPECT_GE(arena.stats().bytes_live, 40000 * sizeof(int));
}

TEST(shared_arena, may_be_destroyed_before_the_threads_that_used_it_exit)
{
    std::latch used(1), gone(1);
    std::optional<shared_arena<>> arena(std::in_place);
    std::thread other([&] {
        std::ignore = arena->allocate({8, 8});
        used.count_down();
        gone.wait();
        shared_arena<> another;
        std::ignore = another.allocate({8, 8});
    });
    used.wait();
    arena.reset();
    arena.emplace(); // made at the address of the destroyed one
    std::ignore = arena->allocate({8, 8});
    gone.count_down();
    other.join();
}

TEST(shared_arena, can_be_the_resource_of_containers_in_several_threads)
{
    pmr_resource<shared_arena<>> arena;
    in_threads(3, [&](int) {
        std::pmr::vector<std::pmr::string> words(&arena);
        for (int i = 0; i < 500; ++i)
            words.emplace_back("a word too long for a string to hold in itself");
        EXPECT_EQ(words.back().size(), 46U);
    });
}

} // namespace
