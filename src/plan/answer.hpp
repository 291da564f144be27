// The answers to the question which rule serves a request, and what a thread knows for the answer.
#pragma once

#include "../os/unwind.hpp"
#include "plan.hpp"

#include <cstdint>

namespace mallard::plan {

/// Where the row of the answer begins in the quick bins of a thread (src/plan/thread.hpp): a rule
/// has a row of bins, one for every 16 bytes of a request. The rows of the answers below overlap,
/// and their bins never have a block.
using answer = std::size_t;

enum : answer {
    missing = 0,        ///< the table does not have the caller
    unknown = 1,        ///< a caller that the plan does not have: malloc serves, and it is counted
    runtime = 2,        ///< an operator new of the C++ runtime, whose caller has been asked already
    by_range = 3,       ///< a caller that the plan does not have: the ranges of the plan decide
    by_stack = 4,       ///< plus the number of frames that tell the stacks of the caller apart
    first_rule = 192,   ///< rule 0; the others follow, `row_bins` apart
    to_malloc = 0xfffe, ///< malloc serves the caller
    ignored = 0xffff,   ///< as `unknown`, and nobody asks for the count
};

/// Requests up to this size may be served quickly.
inline constexpr std::size_t quick_bytes_max = 1024;
inline constexpr std::size_t row_bins = quick_bytes_max / 16;
static_assert(std::size_t{by_stack} + mallard_plan_frames_max + row_bins <= first_rule);
static_assert(first_rule + row_bins * mallard_plan_rules_max <= to_malloc);

constexpr answer answer_of_rule(std::size_t rule) noexcept
{
    return first_rule + rule * row_bins;
}

constexpr bool is_rule(answer a) noexcept
{
    return a >= first_rule && a < to_malloc;
}

constexpr std::size_t rule_of(answer a) noexcept
{
    return (a - first_rule) / row_bins;
}

constexpr bool is_of_malloc(answer a) noexcept
{
    return a >= to_malloc;
}

/// A call of the region of a plan, which has not returned yet. While it is active, the region's
/// rule serves what its thread allocates, and no stack is walked.
struct region_call {
    std::uintptr_t slot = 0; ///< where on the stack the return address of the call is; 0: no call
    std::uintptr_t pc = 0;   ///< the return address
    unsigned not_found = 0;  ///< how often a stack of the region showed no such call
    answer rule = missing;

    /// Whether the call has not returned. Another call from the same place, through a pointer to
    /// another function, looks the same: then the region's rule serves its blocks as well.
    bool is_active(os::call_site here) const noexcept
    {
        return slot != 0 && here.sp < slot && os::is_in_place(slot, pc);
    }
};

/// What a thread knows of its call stack.
struct stack_knowledge {
    os::stack_memory last; ///< the last stack that was compared
    region_call region;
};

} // namespace mallard::plan
