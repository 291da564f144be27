// Finds the rule that serves a request by the call stack, for callers that do not determine the
// rule alone.
#pragma once

#include "answer.hpp"

#include <mallard/trace/replay_format.h>

#include <span>

namespace mallard::plan {

/// A call stack of the plan, as addresses in this process.
struct known_stack {
    const std::uintptr_t* frames;
    std::uint32_t count; ///< 0 in an empty element of the hash table
    answer is;
};

/// The code of a function, as addresses in this process.
struct code_range {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::uintptr_t end_max; ///< the largest end of this range and all ranges before it
    answer rule;
};

/// The parts of a table of answers other than the entries for callers.
struct details {
    std::span<std::uintptr_t> biases; ///< load bias of each module in the plan, or `not_loaded`
    std::span<std::uintptr_t> frames;
    std::span<known_stack> stacks; ///< a hash table whose size is a power of two
    const details* base; ///< an older table, whose stacks are not repeated here; null if there is
                         ///< no such table
    std::span<code_range> ranges; ///< sorted by begin, then with the larger first
    struct answer_table* older;
    bool has_one_rule;  ///< whether the plan has a single rule
    bool is_for_malloc; ///< whether `region_call::rule` is `to_malloc`, as in a control run
};

inline std::uint64_t hash_of(std::span<const std::uintptr_t> frames) noexcept
{
    std::uint64_t hash = 0;
    for (std::uintptr_t const frame : frames)
        hash = mallard_replay_mix(hash, frame);
    return hash;
}

/// Finds the answer by a walk of the call stack. `known` determines whether the code ranges of the
/// plan decide, or how many frames. `last` is the last call stack of the thread, or null if that
/// stack is not available.
answer decide_by_walk(details const& d, answer known, std::uintptr_t caller, os::call_site here,
                      os::stack_memory* last) noexcept;

/// Stores the call of the plan's region (a function of the program) that made a request. Stores no
/// call if the plan has several rules, because a part of the region may then belong to another
/// rule.
void remember_region(details const& d, os::call_site here, stack_knowledge& of_thread) noexcept;

} // namespace mallard::plan
