// Answers. An answer states which rule of the plan serves a request, if any. Also defines the data
// about its call stack that a thread uses to find an answer.
#pragma once

#include "../os/unwind.hpp"
#include "plan.hpp"

#include <cstdint>

namespace mallard::plan {

/// An answer determines which rule serves a request. Its value is the index at which a row begins
/// in the quick bins of a thread (src/plan/thread.hpp). The row of a rule has one bin for every 16
/// bytes of the request size. The rows of the special answers below overlap, and their bins never
/// contain a block.
using answer = std::size_t;

enum : answer {
    missing = 0,        ///< the table does not contain the caller
    unknown = 1,        ///< the caller is not in the plan; malloc serves the request
    runtime = 2,        ///< an operator new of the C++ runtime, whose caller was looked up already
    by_range = 3,       ///< the caller is not in the plan, so the plan's code ranges decide
    by_stack = 4,       ///< plus the number of stack frames that decide for this caller
    first_rule = 192,   ///< rule 0; the other rules follow at distances of `row_bins`
    to_malloc = 0xfffe, ///< malloc serves the request
    ignored = 0xffff,   ///< like `unknown`, but the request is not counted
};

/// The size in bytes of the largest request that may be served from a quick bin.
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

/// Returns whether the call stack, and not the caller alone, decides which rule serves a request.
constexpr bool is_by_walk(answer a) noexcept
{
    return a - by_range < first_rule - by_range;
}

/// A call of a plan's region (a function of the program) that is still running. While the call is
/// active, the region's rule serves all requests of its thread, and no stack is walked. In a
/// control run, in which malloc serves all requests, `rule` is `to_malloc` unless blocks are
/// counted.
struct region_call {
    std::uintptr_t slot = 0; ///< where the return address is on the stack; 0 if there is no call
    std::uintptr_t pc = 0;   ///< the return address of the call
    unsigned not_found = 0;  ///< how often no such call was found on a stack
    answer rule = missing;

    /// Returns whether the call is still running. If the same place later calls another function
    /// through a function pointer, this function cannot distinguish the two calls. The region's
    /// rule then also serves the requests of the other function.
    bool is_active(os::call_site here) const noexcept
    {
        return slot != 0 && here.sp < slot && os::is_in_place(slot, pc);
    }
};

/// The data that a thread stores about its call stack.
struct stack_knowledge {
    os::stack_memory last; ///< the last stack that was walked
    region_call region;
};

} // namespace mallard::plan
