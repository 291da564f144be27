// Helpers for programs that link the local allocators of libmallard-plan.so, and use them next to
// malloc.
#pragma once

#include "../../src/plan/request.hpp"
#include "require.hpp"
#include "tsan.hpp"

#include <cstdlib>

namespace mallard::testing {

/// One rule for each kind of local allocator.
inline constexpr std::uint32_t plan_allocators[] = {mallard_plan_pool, mallard_plan_multipool,
                                                    mallard_plan_arena,
                                                    mallard_plan_multipool_over_arena};
inline constexpr std::size_t plan_rules = 4;

/// Starts a plan without callers, because the tests name the rule of each request. The pool serves
/// blocks of up to 512 bytes, and the other rules blocks of up to 16,384.
inline void start_plan(std::size_t held_max = SIZE_MAX)
{
    static bool const is_started = [] {
        for (std::size_t i = 0; i < plan_rules; ++i) {
            plan::rules[i].allocator = plan_allocators[i];
            plan::rules[i].block_bytes = i == 0 ? 512 : mallard_plan_block_max;
            plan::rules[i].is_quick = true;
        }
        // Before the last round, ThreadSanitizer has already deleted its state of the thread.
        int const last_round = PTHREAD_DESTRUCTOR_ITERATIONS - (has_tsan() ? 1 : 0);
        require(plan::begin_threads(plan_rules, last_round), "the plan has a key for threads");
        require(plan::place_chunks(std::size_t{4} << 30), "the plan has addresses for chunks");
        return true;
    }();
    static_cast<void>(is_started);
    for (std::size_t i = 0; i < plan_rules; ++i)
        plan::rules[i].held_max = held_max;
}

/// Does what the hook of malloc does for a caller that belongs to a rule.
inline void* allocate_by(std::size_t rule, std::size_t bytes)
{
    plan::answer const known = plan::answer_of_rule(rule);
    if (void* const block = plan::allocate_quickly(known, bytes))
        return block;
    if (plan::instance* const in = plan::instance_of(known, bytes, 0))
        if (void* const block = plan::take_counted(*in, bytes))
            return block;
    void* const block = plan::allocate_slowly(
        {.known = known, .is_operator = false, .align_log2 = 0, .caller = 0, .bytes = bytes});
    return block != nullptr ? block : std::malloc(bytes);
}

/// Does what the hook of free does.
inline void free_any(void* block)
{
    if (plan::is_of_plan(block))
        plan::free_of_rule(block);
    else
        std::free(block);
}

/// Does what the hook of realloc does.
inline void* reallocate_any(void* block, std::size_t bytes)
{
    return plan::is_of_plan(block) ? plan::reallocate_of_rule(block, bytes)
                                   : std::realloc(block, bytes);
}

} // namespace mallard::testing
