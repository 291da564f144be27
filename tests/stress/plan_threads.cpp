// Tests the local allocators of plans with threads that start and exit, and that free each other's
// blocks.
#include "../support/choices.hpp"
#include "../support/plan_program.hpp"
#include "../support/threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace {

using namespace mallard::testing;
namespace plan = mallard::plan;

constexpr std::size_t threads = 8;

/// The first bytes of a block. All bytes after them have the value of `seed`.
struct start_of_block {
    std::uint32_t bytes;
    std::uint32_t seed;
};

void fill(void* block, std::size_t bytes, std::uint32_t seed)
{
    start_of_block const start{static_cast<std::uint32_t>(bytes), seed};
    std::memset(block, static_cast<int>(seed & 255), bytes);
    std::memcpy(block, &start, sizeof start);
}

std::size_t check(void* block)
{
    start_of_block start;
    std::memcpy(&start, block, sizeof start);
    auto const* const at = static_cast<unsigned char*>(block);
    for (std::size_t i = sizeof start; i < start.bytes; ++i)
        require(at[i] == (start.seed & 255), "a block keeps its bytes");
    return start.bytes;
}

/// Blocks that threads exchange.
class market {
public:
    void trade(std::size_t number, std::size_t times)
    {
        seeded choose(number + 1);
        for (std::size_t i = 0; i < times; ++i) {
            std::size_t const rule = choose(plan_rules);
            std::size_t bytes = sizeof(start_of_block) + choose(choose(8) == 0 ? 3000 : 300);
            void* block = allocate_by(rule, bytes);
            require(block != nullptr, "a block is allocated");
            fill(block, bytes, static_cast<std::uint32_t>(i));
            void* other = places_[choose(places_.size())].exchange(block);
            if (other == nullptr)
                continue;
            if (choose(5) == 0) {
                std::size_t const before = check(other);
                bytes = sizeof(start_of_block) + choose(2000);
                other = reallocate_any(other, bytes);
                require(other != nullptr, "a block is resized");
                if (bytes >= before)
                    check(other);
                fill(other, bytes, static_cast<std::uint32_t>(i));
            }
            check(other);
            free_any(other);
        }
    }

    ~market()
    {
        for (auto& place : places_)
            if (void* const block = place.exchange(nullptr))
                free_any(block);
    }

private:
    std::array<std::atomic<void*>, 512> places_{};
};

std::size_t held_bytes()
{
    std::size_t held = 0;
    for (std::size_t i = 0; i < plan_rules; ++i)
        held += plan::rules[i].held.load();
    return held;
}

TEST(plan_threads, can_free_and_resize_the_blocks_of_each_other)
{
    start_plan();
    market all;
    in_threads(threads, [&](std::size_t number) { all.trade(number, rounds(20'000)); });
    EXPECT_LT(held_bytes(), std::size_t{512} << 20);
}

TEST(plan_threads, reuse_the_allocator_instances_of_exited_threads)
{
    start_plan();
    market all;
    std::size_t early = 0;
    std::size_t const generations = rounds(40);
    for (std::size_t generation = 0; generation < generations; ++generation) {
        in_threads(threads, [&](std::size_t number) {
            all.trade(generation * threads + number, rounds(500));
        });
        if (generation == generations / 2)
            early = held_bytes();
    }
    std::size_t instances = 0;
    for (plan::thread_rules* t = plan::all_threads(); t != nullptr; t = t->next_of_all)
        instances += 1;
    EXPECT_LE(instances, 3 * threads);
    EXPECT_LE(held_bytes(), 2 * early);
}

TEST(plan_threads, get_blocks_from_malloc_when_a_rule_is_at_its_limit)
{
    start_plan(std::size_t{1} << 20);
    market all;
    in_threads(threads, [&](std::size_t number) { all.trade(number, rounds(5'000)); });
}

/// One thread allocates, and others free, so that each chunk gets frees from threads that do not
/// own it.
TEST(plan_threads, can_free_all_blocks_that_one_thread_allocates)
{
    start_plan();
    for (std::size_t rule = 0; rule < plan_rules; ++rule) {
        std::array<std::atomic<void*>, 64> places{};
        std::atomic<bool> has_ended{false};
        in_threads(threads, [&](std::size_t number) {
            seeded choose(number);
            if (number == 0) {
                for (std::size_t i = 0; i < rounds(100'000); ++i) {
                    void* const block = allocate_by(rule, 40 + i % 200);
                    fill(block, 40 + i % 200, static_cast<std::uint32_t>(i));
                    if (void* const old = places[choose(places.size())].exchange(block))
                        free_any(old);
                }
                has_ended = true;
                return;
            }
            while (!has_ended)
                if (void* const block = places[choose(places.size())].exchange(nullptr)) {
                    check(block);
                    free_any(block);
                }
        });
        for (auto& place : places)
            if (void* const block = place.exchange(nullptr))
                free_any(block);
    }
}

} // namespace
