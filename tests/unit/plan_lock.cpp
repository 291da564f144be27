// Tests a lock for which threads wait only for a short time.
#include "../../src/plan/short_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include <time.h>

namespace {

std::atomic<int> yields = 0;

}

/// Imitates a busy machine, on which other processes run for a while before a yield returns.
extern "C" int sched_yield() noexcept
{
    yields += 1;
    timespec const a_while{0, 2'000'000};
    ::nanosleep(&a_while, nullptr);
    return 0;
}

namespace {

namespace plan = mallard::plan;

TEST(plan_lock, gives_up_waiting_after_few_yields_if_a_yield_takes_long)
{
    plan::short_lock lock;
    std::latch is_taken(1);
    std::latch is_over(1);
    std::thread owner([&] {
        EXPECT_TRUE(lock.try_take());
        is_taken.count_down();
        is_over.wait();
        lock.give();
    });
    is_taken.wait();
    yields = 0;
    EXPECT_FALSE(lock.try_take());
    EXPECT_GT(yields, 0);
    EXPECT_LT(yields, 100);
    is_over.count_down();
    owner.join();
    EXPECT_TRUE(lock.try_take());
    EXPECT_TRUE(lock.is_mine());
    EXPECT_FALSE(lock.try_take()); // fails, as in a signal handler that interrupts the owner
    lock.give();
}

} // namespace
