// The answers to the question which rule serves a request, and what a thread knows for the answer.
#pragma once

#include "../os/unwind.hpp"
#include "plan.hpp"

#include <cstdint>

namespace mallard::plan {

/// The number of a rule, or one of the values below.
using answer = std::uint16_t;

enum : answer {
    by_stack = 0x100,   ///< plus the number of frames that tell the stacks of the caller apart
    by_range = 0x7ffb,  ///< a caller that the plan does not have: the ranges of the plan decide
    runtime = 0x7ffc,   ///< an operator new of the C++ runtime, whose caller has been asked already
    unknown = 0x7ffd,   ///< a caller that the plan does not have, and malloc serves
    to_malloc = 0x7ffe, ///< malloc serves the caller
    missing = 0x7fff,   ///< the table does not have the caller
};

constexpr bool is_rule(answer a) noexcept
{
    return a < mallard_plan_rules_max;
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
