// Tests visits. In a visit, one thread removes the free blocks from the thread cache of another,
// sleeping thread, and returns the blocks to their slabs. `mallard_trim` visits all sleeping
// threads.
//
// Each list of a thread has a limit, which may grow with use. The allowance of a list is the number
// of bytes by which its limit exceeds the initial limit. All lists of all threads together have
// allowances of at most `allowances_max` bytes. A visit also resets the allowances.
#include "../../src/heap/registry.hpp"
#include "../../src/heap/threads.hpp"
#include "../support/child.hpp"
#include "../support/resident.hpp"
#include "../support/threads.hpp"
#include "../support/tsan.hpp"

#include <mallard/c/malloc.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

namespace {

namespace engine = mallard::engine;

using mallard::testing::gate;
using mallard::testing::has_tsan;
using mallard::testing::in_a_child;
using mallard::testing::in_threads;
using mallard::testing::resident_bytes;
using mallard::testing::rounds;

/// Writes the number of the owner into each byte of a block.
void fill(void* block, std::size_t bytes, std::size_t owner)
{
    std::memset(block, static_cast<int>(owner), bytes);
}
bool is_whole(const void* block, std::size_t bytes, std::size_t owner)
{
    auto const* const all = static_cast<const unsigned char*>(block);
    return all[0] == owner && (bytes < 2 || std::memcmp(all, all + 1, bytes - 1) == 0);
}

constexpr std::size_t sizes[] = {16, 48, 200, 1000, 5000, 40000};

/// Allocates and frees blocks of all sizes at random.
class churn {
public:
    explicit churn(std::size_t owner) : owner_(owner), random_(owner * 77 + 1) {}
    ~churn()
    {
        for (one& each : blocks_)
            drop(each);
    }
    void go_on(std::size_t steps)
    {
        for (std::size_t i = 0; i < steps; ++i) {
            random_ = random_ * 6364136223846793005 + 1442695040888963407;
            one& each = blocks_[random_ >> 58];
            if (each.block != nullptr)
                drop(each);
            else
                take(each, sizes[(random_ >> 40) % 6]);
        }
    }

private:
    struct one {
        void* block = nullptr;
        std::size_t bytes = 0;
    };
    void take(one& each, std::size_t bytes)
    {
        each = {mallard_malloc(bytes), bytes};
        fill(each.block, std::min<std::size_t>(bytes, 300), owner_);
    }
    void drop(one& each)
    {
        if (each.block == nullptr)
            return;
        ASSERT_TRUE(is_whole(each.block, std::min<std::size_t>(each.bytes, 300), owner_));
        mallard_free(each.block);
        each = {};
    }

    std::size_t owner_;
    std::uint64_t random_;
    one blocks_[64];
};

TEST(cache_scavenging, gives_no_block_to_two_threads_whatever_call_it_interrupts)
{
    std::atomic<bool> done{false};
    std::jthread visitor([&done] {
        while (!done)
            mallard_trim(0);
    });
    in_threads(4, [](std::size_t me) { churn(me + 1).go_on(rounds(1'000'000)); });
    done = true;
}

TEST(cache_scavenging, lets_a_sleeping_thread_continue_when_it_wakes)
{
    for (std::size_t round = 0; round < rounds(200); ++round) {
        gate asleep;
        gate visited;
        std::jthread sleeper([&] {
            churn blocks(9);
            blocks.go_on(500);
            asleep.open();
            visited.wait();
            blocks.go_on(500);
        });
        asleep.wait();
        mallard_trim(0);
        if (round % 2 == 0)
            mallard_trim(0);
        visited.open();
    }
}

TEST(cache_scavenging, returns_the_blocks_in_the_lists_of_a_sleeping_thread)
{
    if (has_tsan())
        GTEST_SKIP() << "ThreadSanitizer keeps the memory";
    gate asleep;
    gate may_end;
    mallard_trim(0);
    std::size_t const before = resident_bytes();
    std::jthread sleeper([&] {
        std::vector<void*> blocks(6'000);
        for (int round = 0; round < 8; ++round) {
            for (void*& block : blocks) {
                block = mallard_malloc(300);
                fill(block, 300, 1);
            }
            for (void* const block : blocks)
                mallard_free(block);
        }
        asleep.open();
        may_end.wait();
    });
    asleep.wait();
    EXPECT_GT(resident_bytes(), before + (std::size_t{5} << 18));
    mallard_trim(0);
    EXPECT_LT(resident_bytes(),
              // One MiB of tolerance: for the stack of the new thread, and for memory that a
              // sanitizer keeps.
              before + (std::size_t{1} << 20));
    may_end.open();
}

/// Returns whether this thread has a free block of `bytes` in its list.
bool has_in_list(std::size_t bytes)
{
    engine::class_offset const c = engine::offset_of_class(engine::block_class::of(bytes));
    return engine::own_cache()->list_at(c).head != nullptr;
}

/// Allocates and frees blocks of `bytes` until the limit of this thread's list admits one such
/// block. Returns a block.
void* take_again_and_again(std::size_t bytes)
{
    for (int i = 0; i < 4; ++i)
        mallard_free(mallard_malloc(bytes));
    mallard::testing::require(has_in_list(bytes), "the list holds a block");
    return mallard_malloc(bytes);
}

TEST(cache_scavenging, also_returns_the_memory_allowance_of_an_empty_list)
{
    constexpr std::size_t bytes = std::size_t{8} << 20;
    gate asleep;
    gate visited;
    std::jthread sleeper([&] {
        void* const block = take_again_and_again(bytes);
        asleep.open();
        visited.wait();
        mallard_free(mallard_malloc(16)); // ends the visit, so the thread uses its own cache again
        mallard_free(block);
        EXPECT_FALSE(has_in_list(bytes));
    });
    asleep.wait();
    mallard_trim(0);
    EXPECT_EQ(engine::allowances.load(), 0u);
    visited.open();
}

TEST(cache_scavenging, returns_in_a_forked_child_the_memory_allowances_of_missing_threads)
{
    if (has_tsan())
        GTEST_SKIP() << "ThreadSanitizer does not support threads after fork";
    // Visits begin when the memory in use has grown by an eighth. The two blocks of the threads are
    // less than an eighth of the 20 blocks in use, so no visit begins.
    void* in_use[20];
    for (void*& block : in_use)
        block = mallard_malloc(engine::block_bytes_max);
    gate asleep[2];
    gate may_end;
    auto const hold_a_block_and_sleep = [&](gate& here) {
        void* const block = take_again_and_again(engine::block_bytes_max);
        here.open();
        may_end.wait();
        mallard_free(block);
    };
    std::jthread const one([&] { hold_a_block_and_sleep(asleep[0]); });
    std::jthread const other([&] { hold_a_block_and_sleep(asleep[1]); });
    asleep[0].wait();
    asleep[1].wait();
    EXPECT_EQ(engine::allowances.load(), engine::allowances_max);
    EXPECT_EQ(in_a_child([] { mallard_free(take_again_and_again(std::size_t{2} << 20)); }), "fine");
    may_end.open();
    for (void* const block : in_use)
        mallard_free(block);
}

} // namespace
