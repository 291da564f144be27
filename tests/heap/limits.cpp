// Tests the memory limits of heaps and of malloc.
#include "../support/child.hpp"
#include "../support/threads.hpp"
#include "../support/tsan.hpp"

#include <mallard/heap.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

using mallard::heap;

constexpr std::size_t kib = 1024;

struct told {
    mallard_heap* heap = nullptr;
    std::vector<std::size_t> limits;
    std::vector<void*> may_go;
};

void remember(void* context, std::size_t held, std::size_t limit)
{
    auto& what = *static_cast<told*>(context);
    what.limits.push_back(limit);
    EXPECT_GT(held + kib * 1024, limit);
    for (void* const block : what.may_go)
        mallard_heap_free(what.heap, block);
    what.may_go.clear();
}

TEST(limits, a_heap_uses_no_more_memory_than_its_limit)
{
    for (std::size_t const limit : {16 * kib, 64 * kib, 100 * kib, 1000 * kib}) {
        heap h({.limit = limit});
        std::size_t count = 0;
        while (void* const block = h.try_allocate(1000)) {
            std::memset(block, 1, 1000);
            count += 1;
        }
        EXPECT_LE(h.stats().bytes_taken, limit);
        EXPECT_GT(count * 1024 * 5 / 4 + 32 * kib, limit);
        EXPECT_EQ(h.try_allocate(2 * limit), nullptr);
        EXPECT_THROW(static_cast<void>(h.allocate(1000)), std::bad_alloc);
        EXPECT_EQ(h.stats().blocks_live, count);
        h.limit({});
        EXPECT_NE(h.try_allocate(2 * limit), nullptr);
        EXPECT_NE(h.try_allocate(1000), nullptr);
    }
}

TEST(limits, the_soft_limit_is_reported_once_each_time_it_is_crossed)
{
    told what;
    heap h({.limit_soft = 300 * kib, .met = remember, .context = &what});
    for (int round = 1; round <= 3; ++round) {
        for (int i = 0; i < 1000; ++i)
            ASSERT_NE(h.try_allocate(1000), nullptr);
        EXPECT_EQ(what.limits, std::vector(static_cast<std::size_t>(round), 300 * kib));
        h.release();
    }
}

TEST(limits, the_soft_limit_is_reported_again_only_after_a_fall_below_three_quarters_of_it)
{
    constexpr std::size_t bytes = 2048 * kib; // a large block, which counts until it is freed
    told what;
    heap h({.limit_soft = 20 * bytes, .met = remember, .context = &what});
    std::vector<void*> blocks;
    // Each block is a small part of the limit. So no single allocation raises the use from below
    // three quarters of the limit to above the limit.
    auto const hold = [&](std::size_t count) {
        while (blocks.size() < count)
            blocks.push_back(h.allocate(bytes));
        for (; blocks.size() > count; blocks.pop_back())
            mallard_free(blocks.back());
    };
    for (std::size_t reports = 1; reports <= 3; ++reports) {
        hold(30);
        EXPECT_EQ(what.limits, std::vector(reports, 20 * bytes));
        hold(16);
        hold(30);
        EXPECT_EQ(what.limits, std::vector(reports, 20 * bytes));
        hold(10);
    }
}

TEST(limits, the_callback_at_the_hard_limit_may_free_blocks)
{
    told what;
    heap h({.limit = 1000 * kib, .met = remember, .context = &what});
    what.heap = h.handle();
    for (int i = 0; i < 10; ++i)
        what.may_go.push_back(h.allocate(50 * kib));
    int count = 0;
    while (h.try_allocate(50 * kib) != nullptr)
        count += 1;
    EXPECT_GT(count, 10);
    EXPECT_EQ(what.limits, std::vector(2, 1000 * kib));
}

TEST(limits, limits_of_a_shared_heap_are_reported_while_no_lock_is_held)
{
    told what;
    mallard::shared_heap h({.limit = 500 * kib, .met = remember, .context = &what});
    what.heap = h.handle();
    what.may_go.push_back(h.allocate(400 * kib));
    EXPECT_NE(h.try_allocate(300 * kib), nullptr);
    EXPECT_EQ(h.try_allocate(300 * kib), nullptr);
}

TEST(limits, hold_for_blocks_that_grow)
{
    heap h({.limit = 3000 * kib});
    void* block = h.allocate(2000 * kib);
    EXPECT_EQ(mallard_realloc(block, 4000 * kib), nullptr);
    block = mallard_realloc(block, 2500 * kib);
    EXPECT_NE(block, nullptr);
    block = mallard_realloc(block, 1500 * kib);
    EXPECT_LE(h.stats().bytes_taken, 1600 * kib);
    mallard_free(block);
    EXPECT_LE(h.stats().bytes_taken, 0u);
}

TEST(limits, cached_blocks_are_returned_before_a_request_of_any_size_fails)
{
    using mallard::testing::require;
    constexpr std::size_t mib = 1024 * kib;
    auto const keep_a_block = [] {
        for (int i = 0; i < 4; ++i)
            mallard_free(mallard_malloc(32 * mib));
    };
    EXPECT_EQ(mallard::testing::in_a_child([=] {
                  mallard_limit(0, 100 * mib, nullptr, nullptr);
                  keep_a_block();
                  void* const large = mallard_malloc(80 * mib);
                  require(large != nullptr, "a large block is allocated");
                  mallard_free(large);
                  keep_a_block();
                  for (int i = 0; i < 80; ++i)
                      require(mallard_calloc(1, mib) != nullptr,
                              "80 blocks of 1 MiB are allocated");
              }),
              "fine");
}

/// A call of the user's function that does not return until the test lets it return.
struct long_call {
    mallard::testing::gate begun;
    mallard::testing::gate may_end;
    bool is_child = false;
    std::size_t calls_in_child = 0;
};

void take_long(void* context, std::size_t, std::size_t)
{
    auto& what = *static_cast<long_call*>(context);
    if (what.is_child) {
        what.calls_in_child += 1;
        return;
    }
    what.begun.open();
    what.may_end.wait();
}

TEST(limits, are_reported_in_a_forked_child_even_if_another_thread_was_in_the_callback)
{
    if (mallard::testing::has_tsan())
        GTEST_SKIP() << "ThreadSanitizer does not support threads after fork";
    long_call what;
    mallard::shared_heap h({.limit = 64 * kib, .met = take_long, .context = &what});
    std::jthread other([&] { EXPECT_EQ(h.try_allocate(1000 * kib), nullptr); });
    what.begun.wait();
    EXPECT_EQ(
        mallard::testing::in_a_child([&] {
            what.is_child = true;
            mallard::testing::require(h.try_allocate(1000 * kib) == nullptr, "the request fails");
            mallard::testing::require(what.calls_in_child == 1, "and the failure is reported");
        }),
        "fine");
    what.may_end.open();
}

} // namespace
