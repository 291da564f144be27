// How the call stack of a request decides which rule serves it, where the caller alone does not.
#pragma once

#include "answer.hpp"

#include <mallard/trace/replay_format.h>

#include <span>

namespace mallard::plan {

/// A stack of the plan, in the addresses of this process.
struct known_stack {
    const std::uintptr_t* frames;
    std::uint32_t count; ///< 0: an empty place of the hash table
    answer is;
};

/// The code of a function, in the addresses of this process.
struct code_range {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::uintptr_t end_max; ///< the largest end of this range and of all before it
    answer rule;
};

/// What a table of answers has besides the callers.
struct details {
    std::span<std::uintptr_t> biases; ///< of each module of the plan, or `not_loaded`
    std::span<std::uintptr_t> frames;
    std::span<known_stack> stacks; ///< a hash table whose size is a power of two
    const details* base; ///< of a table for some of the modules: its stacks are not repeated here.
                         ///< Null: there is none
    std::span<code_range> ranges; ///< sorted by begin, the larger first
    struct answer_table* older;
    bool has_one_rule; ///< whether the plan has a single rule
};

inline std::uint64_t hash_of(std::span<const std::uintptr_t> frames) noexcept
{
    std::uint64_t hash = 0;
    for (std::uintptr_t const frame : frames)
        hash = mallard_replay_mix(hash, frame);
    return hash;
}

/// Decides by the ranges of the plan, or by so many frames as `known` says. `last` has the last
/// call stack of the thread; null: it is not available.
answer decide_by_walk(details const& d, answer known, std::uintptr_t caller, os::call_site here,
                      os::stack_memory* last) noexcept;

/// Remembers the call of the region in which a request was made. Only for plans with one rule: a
/// part of a region may belong to another rule.
void remember_region(details const& d, os::call_site here, stack_knowledge& of_thread) noexcept;

} // namespace mallard::plan
