// Tests the table of callers and their answers in a plan that has no callers.
#include "../support/plan_program.hpp"

#include <gtest/gtest.h>

namespace {

namespace plan = mallard::plan;

void nobody_has_another_build(std::span<const char>) noexcept {}
void no_runtime() noexcept {}

/// Starts a plan without rules and without callers.
plan::answer_table& start_empty_plan()
{
    plan::answer_options const for_what{.are_counted = false, .is_control = false};
    static bool const is_started =
        plan::begin_decisions(plan::plan{}, for_what, nobody_has_another_build) ==
        plan::start_of_plan::begun;
    EXPECT_TRUE(is_started);
    plan::begin_answers(no_runtime);
    return *plan::answers.load();
}

plan::answer decide(std::uintptr_t caller)
{
    return plan::decide_slowly(plan::answer_of(caller), {.caller = caller, .is_operator = false},
                               mallard::os::caller(), nullptr);
}

std::uintptr_t address_of(void (*function)())
{
    return reinterpret_cast<std::uintptr_t>(function);
}

void first_caller() {}
void second_caller() {}

TEST(plan_decision, a_caller_that_is_not_in_the_plan_is_looked_up_once)
{
    start_empty_plan();
    std::uintptr_t const caller = address_of(first_caller);
    EXPECT_EQ(plan::answer_of(caller), plan::missing);
    EXPECT_EQ(decide(caller), plan::unknown);
    EXPECT_EQ(plan::answer_of(caller), plan::ignored);
}

/// In the child of a fork, a caller may have no answer: another thread had stored the caller, and
/// not yet its answer.
TEST(plan_decision, a_caller_without_a_cached_decision_gets_one)
{
    plan::answer_table& table = start_empty_plan();
    std::uintptr_t const caller = address_of(second_caller);
    std::uintptr_t offset = table.offset_of(caller);
    while (table.at(offset).caller != 0)
        offset = table.after(offset);
    table.at(offset).caller = caller;
    EXPECT_EQ(plan::answer_of(caller), plan::missing);
    EXPECT_EQ(decide(caller), plan::unknown);
    EXPECT_EQ(plan::answer_of(caller), plan::ignored);
}

} // namespace
