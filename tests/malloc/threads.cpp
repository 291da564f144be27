// Tests blocks that several threads allocate, free and exchange.
#include "../support/threads.hpp"
#include "../support/choices.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>

namespace {

using namespace mallard::testing;

constexpr std::size_t mebibyte = 1 << 20;

struct block {
    void* start = nullptr;
    std::size_t bytes = 0;
    unsigned seed = 0;
};

block new_block(std::size_t bytes, unsigned seed)
{
    block const b{std::malloc(bytes), bytes, seed};
    require(b.start != nullptr, "there is memory");
    fill(b.start, bytes, seed);
    return b;
}
void end_of(block b)
{
    require(holds(b.start, b.bytes, b.seed), "a block keeps its bytes");
    std::free(b.start);
}

TEST(blocks, outlive_the_thread_that_allocated_them)
{
    std::vector<block> blocks;
    for (unsigned round = 0; round < 50; ++round)
        in_a_thread([&] {
            for (std::size_t bytes = 1; bytes < 3 * mebibyte; bytes = bytes * 3 + round)
                blocks.push_back(new_block(bytes, round));
        });
    in_a_thread([&] {
        for (std::size_t i = 0; i < blocks.size(); i += 2)
            end_of(blocks[i]);
    });
    for (std::size_t i = 1; i < blocks.size(); i += 2)
        end_of(blocks[i]);
}

/// Each thread frees a block that another thread has left for it, and leaves a new block.
TEST(blocks, are_freed_by_any_thread)
{
    constexpr std::size_t slots = 512, steps = 40'000;
    std::vector<std::atomic<block*>> table(slots);
    in_threads(4, [&](std::size_t number) {
        seeded choose(number);
        for (unsigned step = 0; step < steps; ++step) {
            auto* const mine = new block(new_block(choose(std::size_t{1} << choose(16)), step));
            block* const old = table[choose(slots)].exchange(mine);
            if (old != nullptr)
                end_of(*old);
            delete old;
        }
    });
    for (auto& slot : table)
        if (std::unique_ptr<block> const last(slot.load()); last != nullptr)
            end_of(*last);
}

TEST(blocks, are_reused_when_one_thread_allocates_and_another_frees)
{
    constexpr std::size_t at_once = 1000;
    puppet frees;
    std::vector<void*> blocks(at_once);
    std::size_t early = 0;
    for (int round = 0; round < 2000; ++round) {
        for (void*& b : blocks)
            std::memset(b = std::malloc(500), round, 500);
        frees([&] {
            for (void* const b : blocks)
                std::free(b);
        });
        if (round == 200)
            early = resident_bytes();
    }
    EXPECT_LE(resident_bytes(), early + 4 * mebibyte); // after 1 GB of allocations
}

TEST(blocks, are_reallocated_by_threads_that_did_not_allocate_them)
{
    std::vector<block> blocks;
    for (unsigned i = 0; i < 3000; ++i)
        blocks.push_back(new_block(1 + i * i % 100'000, i));
    in_threads(3, [&](std::size_t number) {
        for (std::size_t i = number; i < blocks.size(); i += 3) {
            auto& [start, bytes, seed] = blocks[i];
            std::size_t const more = bytes * 2;
            start = std::realloc(start, more);
            require(holds(start, std::min<std::size_t>(bytes, 4096), seed),
                    "they keep their bytes");
            fill(start, bytes = more, seed);
        }
    });
    for (block const& b : blocks)
        end_of(b);
}

/// Runs short threads one after another. Each thread leaves blocks that the next thread frees.
void pass_on(std::size_t threads)
{
    struct relay {
        std::vector<block> blocks;
        unsigned number = 0;
    } baton;
    auto const run = [](void* argument) -> void* {
        auto& [blocks, number] = *static_cast<relay*>(argument);
        for (block const& b : blocks)
            end_of(b);
        blocks.clear();
        for (std::size_t bytes = 16; bytes < 3000; bytes *= 2)
            blocks.push_back(new_block(bytes + number % 100, number));
        ++number;
        return nullptr;
    };
    std::size_t early = 0;
    for (std::size_t i = 0; i < threads; ++i) {
        pthread_t thread;
        ASSERT_EQ(::pthread_create(&thread, nullptr, run, &baton), 0);
        ::pthread_join(thread, nullptr);
        if (i == threads / 10)
            early = resident_bytes();
    }
    EXPECT_LE(resident_bytes(), early + 2 * mebibyte);
    for (block const& b : baton.blocks)
        end_of(b);
}

TEST(threads, twenty_thousand_short_lived_threads_leave_no_memory_behind)
{
    pass_on(20'000);
}

/// `./x soak` runs this test.
TEST(threads, DISABLED_a_hundred_thousand_short_lived_threads_leave_no_memory_behind)
{
    pass_on(100'000);
}

/// A thread-specific key. Its destructor allocates a new block and sets the key again, so that the
/// C library calls the destructor in every round. The last round frees the last block.
struct rearmed {
    static inline pthread_key_t key;
    int round = 0;
    char bytes[1000];

    static void destroy(void* value)
    {
        auto* const old = static_cast<rearmed*>(value);
        int const round = old->round + 1;
        std::free(old);
        std::free(hidden(std::malloc(100'000)));
        if (round == PTHREAD_DESTRUCTOR_ITERATIONS)
            return;
        auto* const next = static_cast<rearmed*>(std::malloc(sizeof(rearmed)));
        next->round = round;
        ::pthread_setspecific(key, next);
    }
    static void* run(void*)
    {
        ::pthread_setspecific(key, std::calloc(1, sizeof(rearmed)));
        return nullptr;
    }
};

TEST(threads, five_thousand_threads_that_allocate_while_they_exit_leave_no_memory_behind)
{
    ASSERT_EQ(::pthread_key_create(&rearmed::key, rearmed::destroy), 0);
    std::size_t early = 0;
    for (int i = 0; i < 5000; ++i) {
        pthread_t thread;
        ASSERT_EQ(::pthread_create(&thread, nullptr, rearmed::run, nullptr), 0);
        ::pthread_join(thread, nullptr);
        if (i == 500)
            early = resident_bytes();
    }
    EXPECT_LE(resident_bytes(), early + mebibyte);
    ::pthread_key_delete(rearmed::key);
}

/// Owns a block until its thread exits, and allocates once more in the destructor.
struct last_words {
    ~last_words()
    {
        std::free(hidden(std::realloc(start, 5000)));
        delete[] hidden(new char[100]);
    }
    void* start = std::malloc(500);
};

TEST(threads, allocate_and_free_in_destructors_of_any_order)
{
    pthread_key_t before, after;
    auto const free_it = [](void* value) {
        std::free(value);
        std::free(hidden(std::malloc(300)));
    };
    ASSERT_EQ(::pthread_key_create(&before, free_it), 0);
    for (int round = 0; round < 200; ++round)
        in_a_thread([&] {
            ::pthread_setspecific(before, std::malloc(70));
            thread_local last_words first; // constructed before or after the first malloc
            std::free(hidden(first.start));
            first.start = std::malloc(50);
            thread_local last_words second;
            require(second.start != nullptr, "there is memory");
        });
    ASSERT_EQ(::pthread_key_create(&after, free_it), 0);
    for (int round = 0; round < 200; ++round)
        in_a_thread([&] {
            thread_local last_words only;
            ::pthread_setspecific(after, only.start == nullptr ? nullptr : std::malloc(70));
        });
    ::pthread_key_delete(before);
    ::pthread_key_delete(after);
}

TEST(threads, only_free_and_never_allocate)
{
    std::size_t early = 0;
    for (unsigned round = 0; round < 1000; ++round) {
        std::vector<block> blocks;
        for (std::size_t bytes = 10; bytes < 50'000; bytes *= 2)
            blocks.push_back(new_block(bytes, round));
        in_a_thread([&] {
            for (block const& b : blocks)
                end_of(b);
        });
        if (round == 100)
            early = resident_bytes();
    }
    EXPECT_LE(resident_bytes(), early + mebibyte);
}

void* work_in_little_room(void*)
{
    for (std::size_t bytes = 1; bytes < 40 * mebibyte; bytes = bytes * 5 / 2 + 1) {
        void* start = std::calloc(1, bytes);
        start = std::realloc(start, bytes * 2);
        void* const other = ::memalign(256, bytes);
        require(start != nullptr && other != nullptr, "there is memory");
        std::free(start);
        std::free(other);
    }
    ::malloc_trim(0);
    return nullptr;
}

TEST(threads, a_thread_with_the_smallest_stack_can_allocate)
{
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ASSERT_EQ(::pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN), 0);
    for (int i = 0; i < 20; ++i) {
        pthread_t thread;
        ASSERT_EQ(::pthread_create(&thread, &attributes, work_in_little_room, nullptr), 0);
        ::pthread_join(thread, nullptr);
    }
    ::pthread_attr_destroy(&attributes);
}

} // namespace
