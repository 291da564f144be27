// Tests the malloc engine over a system that fails calls: the n-th call, every n-th call, or all
// calls from the n-th on. The linker replaces mmap and similar calls with the functions in this
// file (see ../CMakeLists.txt).
#include "../../src/heap/sample.hpp"
#include "../support/asan.hpp"
#include "../support/child.hpp"
#include "../support/engine_program.hpp"
#include "../support/threads.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include <sys/mman.h>

extern "C" {
void* __real_mmap(void*, std::size_t, int, int, int, off_t);
int __real_munmap(void*, std::size_t);
int __real_mprotect(void*, std::size_t, int);
int __real_madvise(void*, std::size_t, int);
void* __real_mremap(void*, std::size_t, std::size_t, int, ...);
}

namespace {

struct refusals {
    std::size_t first = ~std::size_t{0}; ///< number of the first failed call, from 1
    /// After the first failed call, every `each`-th call fails. 0 means that no further call fails.
    std::size_t each = 0;
    std::size_t mapping_max = ~std::size_t{0};
    bool places = false; ///< whether mmap fails calls that ask for an address
    int error = ENOMEM;
};

refusals plan;

/// Counters in memory that the child processes share.
struct counts {
    std::atomic<std::size_t> calls;   ///< calls of the current child
    std::atomic<std::size_t> refused; ///< failed calls of all children
};
counts& counted = *static_cast<counts*>(__real_mmap(nullptr, sizeof(counts), PROT_READ | PROT_WRITE,
                                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0));

bool refuses(std::size_t mapping = 0)
{
    std::size_t const call = ++counted.calls;
    bool const now = mapping > plan.mapping_max || call == plan.first ||
                     (call > plan.first && plan.each != 0 && (call - plan.first) % plan.each == 0);
    counted.refused += now;
    if (now)
        errno = plan.error;
    return now;
}

} // namespace

extern "C" {
void* __wrap_mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (plan.places && at != nullptr && (flags & MAP_FIXED) == 0) {
        errno = EEXIST;
        return MAP_FAILED;
    }
    return refuses(bytes) ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, file, offset);
}
int __wrap_munmap(void* at, std::size_t bytes)
{
    return refuses() ? -1 : __real_munmap(at, bytes);
}
int __wrap_mprotect(void* at, std::size_t bytes, int protection)
{
    return refuses() ? -1 : __real_mprotect(at, bytes, protection);
}
int __wrap_madvise(void* at, std::size_t bytes, int advice)
{
    return refuses() ? -1 : __real_madvise(at, bytes, advice);
}
void* __wrap_mremap(void* at, std::size_t bytes, std::size_t bytes_new, int flags, ...)
{
    return refuses() ? MAP_FAILED : __real_mremap(at, bytes, bytes_new, flags);
}
}

namespace {

using namespace mallard::testing;
namespace engine = mallard::engine;

/// Runs threads one after another, so that caches are abandoned and reclaimed. Failed calls can
/// prevent that a cache is made.
void run_program(std::uint64_t seed, bool may_fail)
{
    engine_market market(48);
    for (std::size_t part = 0; part < 4; ++part) {
        in_a_thread([&] {
            engine_user user(seed + part, may_fail);
            for (std::size_t i = 0; i < 200; ++i) {
                market.trade(user);
                if (i % 16 == 0) {
                    engine::the_slice_heap.age();
                    engine::the_slice_heap.trim(std::size_t{1} << 20);
                }
            }
        });
        engine::flush_abandoned();
    }
    in_a_thread([&] { market.clear(); });
}

/// Checks that all committed memory is free and is one span in the only reservation.
void expect_nothing_lost()
{
    // Freeing the block also unmaps mappings that the system could not unmap before.
    in_a_thread([] { engine::deallocate(engine::allocate(std::size_t{33} << 20)); });
    require(engine::huge_now().blocks == 0, "no mapping is left");
    require(engine::huge_now().bytes == 0, "no mapping's bytes are left");
    require(slices_used() == 0, "no slices are lost");
    engine::usage const now = engine::the_slice_heap.now();
    if (now.committed == 0)
        return;
    engine::span const all = engine::the_slice_heap.take(now.committed);
    require(all.in != nullptr && engine::the_slice_heap.now().committed == now.committed,
            "all slices are found again");
    engine::the_slice_heap.give(*all.in, all.slice, now.committed);
}

/// Runs `run_program` in a process that has not used the engine yet. Returns what went wrong.
std::string survives(refusals const& r, std::uint64_t seed)
{
    return in_a_child([&] {
        doing = "first " + std::to_string(r.first) + ", each " + std::to_string(r.each) +
                ", error " + std::to_string(r.error);
        plan = r;
        counted.calls = 0;
        run_program(seed, true);
        std::size_t const made = counted.calls;
        plan = {};
        expect_nothing_lost();
        run_program(seed, false);
        expect_nothing_lost();
        counted.calls = made;
    });
}

/// Runs the program many times. Each run fails another system call first: each of the first 40
/// calls, and then every `step`-th. A short run tries fewer calls, and a quarter as many with
/// AddressSanitizer, where a child process takes ten times as long.
void survive_each(std::size_t each, int error, std::size_t step)
{
    std::size_t const apart = std::max<std::size_t>(stride(5), has_asan() ? 4 : 1);
    EXPECT_EQ(survives({}, each), "fine");
    std::size_t const count = counted.calls;
    EXPECT_GT(count, 50U);
    std::size_t points = 0;
    counted.refused = 0;
    for (std::size_t first = 1; first <= count;
         first += first < rounds(40) / apart ? 1 : step * apart, ++points)
        ASSERT_EQ(survives({.first = first, .each = each, .error = error}, each), "fine")
            << "first " << first << ", each " << each;
    std::printf("%zu calls, %zu points, %zu refused\n", count, points, counted.refused.load());
    // The clock decides when idle memory is returned. So a run may make fewer calls than the first
    // run, which was counted, and may end before the last calls are reached.
    constexpr std::size_t not_reached_max = 3;
    EXPECT_GE(counted.refused + not_reached_max, points);
}

TEST(engine, survives_the_failure_of_any_one_system_call)
{
    survive_each(0, ENOMEM, 5);
}

TEST(engine, survives_if_all_system_calls_from_the_nth_on_fail)
{
    survive_each(1, ENOMEM, 5);
}

TEST(engine, survives_if_every_third_system_call_fails)
{
    survive_each(3, ENOMEM, 11);
}

// In a sandbox, calls fail with other errors. The engine then has a second way to commit memory.
TEST(engine, survives_system_calls_that_fail_with_the_error_of_a_sandbox)
{
    survive_each(2, EPERM, 11);
}

/// Counts live sampled blocks, as a heap profile would. Each call shortens the mean sampling
/// distance.
void count_sample(void* live, mallard_sample_event event, const mallard_sample*)
{
    *static_cast<std::size_t*>(live) += event == MALLARD_SAMPLE_ALLOCATED ? 1 : ~std::size_t{0};
}

TEST(engine, survives_failing_system_calls_while_blocks_are_sampled)
{
    for (std::size_t first = 1; first <= 60; first += 3)
        ASSERT_EQ(in_a_child([&] {
                      std::size_t live = 0;
                      counted.calls = 0;
                      plan = {.first = first, .each = 2};
                      bool const begun = engine::set_sampling(20'000, count_sample, &live) == 0;
                      run_program(first, true);
                      require(live == 0, "all sampled blocks are reported as freed");
                      plan = {};
                      require(begun || engine::set_sampling(20'000, count_sample, &live) == 0,
                              "sampling begins when there is memory");
                      run_program(first, false);
                      require(live == 0, "all sampled blocks are reported as freed");
                      expect_nothing_lost();
                  }),
                  "fine")
            << "first " << first;
}

// At first the threads cannot get thread caches, so they share the fallback cache. Later they get
// caches.
TEST(engine, survives_failing_system_calls_in_several_threads)
{
    for (std::size_t each : {1U, 2U, 3U, 5U})
        EXPECT_EQ(in_a_child([&] {
                      engine_market market(64);
                      counted.calls = 0;
                      plan = {.first = each, .each = each};
                      in_threads(4, [&](std::size_t number) {
                          engine_user user(number, true);
                          market.trade(user, rounds(2000));
                      });
                      plan = {};
                      in_threads(4, [&](std::size_t number) {
                          engine_user user(number);
                          market.trade(user, rounds(2000));
                      });
                      in_a_thread([&] { market.clear(); });
                      expect_nothing_lost();
                      run_program(each, false);
                      expect_nothing_lost();
                  }),
                  "fine")
            << "each " << each;
}

TEST(engine, retries_a_few_failed_unmaps_in_each_later_free)
{
    EXPECT_EQ(in_a_child([] {
                  constexpr std::size_t bytes = std::size_t{33} << 20;
                  for (std::size_t i = 0; i < 1000; ++i) {
                      void* const block = engine::allocate(bytes);
                      require(block != nullptr, "a large block is served");
                      counted.calls = 0;
                      plan = {.first = 1, .each = 1};
                      engine::deallocate(block);
                      plan = {};
                      require(counted.calls <= 5, "a free does not retry all refused unmaps");
                  }
                  require(engine::huge_now().blocks == 0, "all blocks are freed");
                  for (std::size_t i = 0; i < 600; ++i) // each free tries again to unmap two blocks
                      engine::deallocate(engine::allocate(bytes));
                  void* blocks[1000];
                  for (void*& block : blocks)
                      block = engine::allocate(bytes);
                  require(engine::huge_now().blocks > 400, "there are mappings again");
                  for (void* const block : blocks)
                      engine::deallocate(block);
              }),
              "fine");
}

TEST(engine, makes_several_small_reservations_if_a_large_one_fails)
{
    EXPECT_EQ(in_a_child([] {
                  plan = {.mapping_max = std::size_t{10} << 20, .places = true};
                  for (std::uint64_t seed = 0; seed < 5; ++seed)
                      run_program(seed, true);
                  std::size_t count = 0;
                  for (engine::reservation const& w : engine::reservations)
                      count += w.slices != 0;
                  require(count > 1, "there are several reservations");
                  require(slices_used() == 0, "no slices are lost");
              }),
              "fine");
}

} // namespace
