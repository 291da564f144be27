// Tests which memory of exited threads plans use again, and what the child of a fork uses of the
// memory that other threads return during the fork. Those tests call the fork handlers directly,
// and the test program continues as the child would.
#include "../support/plan_program.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace {

using namespace mallard::testing;
namespace plan = mallard::plan;

constexpr plan::chunk_use no_use{plan::no_thread, nullptr, nullptr, nullptr, 0};

/// A thread that allocates, and exits when `must_end` is true. Provides access to its instances.
class served_thread {
public:
    served_thread()
        : thread_([this] {
              free_any(allocate_by(0, 16));
              rules = plan::own_rules;
              has_rules = true;
              has_rules.notify_all();
              must_end.wait(false);
          })
    {
        has_rules.wait(false);
    }
    ~served_thread() { end(); }
    served_thread(served_thread const&) = delete;
    served_thread& operator=(served_thread const&) = delete;

    void end()
    {
        must_end = true;
        must_end.notify_all();
        if (thread_.joinable())
            thread_.join();
    }

    plan::thread_rules* rules = nullptr;

private:
    std::atomic<bool> has_rules = false;
    std::atomic<bool> must_end = false;
    std::thread thread_;
};

TEST(plan_fork, the_child_does_not_use_a_chunk_that_a_thread_returned_during_the_fork)
{
    start_plan();
    plan::chunk* const given = plan::take_chunk(no_use);
    ASSERT_NE(given, nullptr);
    plan::lock_chunks();
    std::thread([=] { plan::give_chunk(*given); }).join();
    plan::unlock_chunks(/*is_child=*/true);
    std::array<plan::chunk*, 100> taken{};
    for (plan::chunk*& c : taken) {
        c = plan::take_chunk(no_use);
        EXPECT_NE(c, nullptr);
        EXPECT_NE(c, given);
    }
    for (plan::chunk* const c : taken)
        plan::give_chunk(*c);
}

TEST(plan_fork, the_child_uses_a_chunk_that_a_thread_returned_before_the_fork)
{
    start_plan();
    plan::chunk* const given = plan::take_chunk(no_use);
    ASSERT_NE(given, nullptr);
    std::thread([=] { plan::give_chunk(*given); }).join();
    plan::lock_chunks();
    plan::unlock_chunks(/*is_child=*/true);
    EXPECT_EQ(plan::take_chunk(no_use), given);
    plan::give_chunk(*given);
}

TEST(plan_fork, the_parent_uses_a_chunk_that_a_thread_returned_during_the_fork)
{
    start_plan();
    std::array<plan::chunk*, 200> taken{};
    for (plan::chunk*& c : taken)
        c = plan::take_chunk(no_use);
    plan::lock_chunks();
    std::thread([&] {
        for (plan::chunk* const c : taken)
            plan::give_chunk(*c);
    }).join();
    plan::unlock_chunks(/*is_child=*/false);
    std::size_t const bytes = plan::all_chunks.bytes;
    for (plan::chunk*& c : taken)
        c = plan::take_chunk(no_use);
    EXPECT_EQ(plan::all_chunks.bytes, bytes);
    for (plan::chunk* const c : taken)
        plan::give_chunk(*c);
}

TEST(plan_fork, the_child_does_not_use_the_instances_of_a_thread_that_exited_during_the_fork)
{
    start_plan();
    served_thread first;
    ASSERT_NE(first.rules, nullptr);
    plan::lock_threads();
    first.end();
    plan::unlock_threads(/*is_child=*/true);
    std::array<served_thread, 8> later;
    for (served_thread const& t : later) {
        EXPECT_NE(t.rules, nullptr);
        EXPECT_NE(t.rules, first.rules);
    }
}

TEST(plan_thread, instances_are_not_reused_if_their_thread_exited_while_changing_them)
{
    start_plan();
    plan::thread_rules* changed = nullptr;
    std::thread([&] {
        free_any(allocate_by(0, 16));
        changed = plan::own_rules;
        plan::ready_rules = nullptr; // as in the middle of a change
    }).join();
    std::array<served_thread, 8> later;
    for (served_thread const& t : later)
        EXPECT_NE(t.rules, changed);
}

TEST(plan_fork, the_child_uses_the_instances_of_a_thread_that_exited_before_the_fork)
{
    start_plan();
    served_thread first;
    ASSERT_NE(first.rules, nullptr);
    first.end();
    plan::lock_threads();
    plan::unlock_threads(/*is_child=*/true);
    served_thread const later;
    EXPECT_EQ(later.rules, first.rules);
}

} // namespace
