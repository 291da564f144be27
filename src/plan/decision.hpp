// Finds the rule of the plan that serves an allocation. For most requests, the caller of malloc
// decides, with one look-up in a hash table. For the others, a few frames of the call stack decide,
// or the whole stack.
//
// The table of answers is computed from the plan for the modules that are loaded. A reader loads
// `answers` and never waits. If other modules of the plan are loaded later, a new table replaces
// the old one, which stays readable. A caller that is not in the plan is added to the table at its
// first allocation, by one compare-and-swap of an empty entry, so that the plan is searched for
// each caller only once.
#pragma once

#include "answer.hpp"

#include <atomic>
#include <cstdint>

namespace mallard::plan {

/// A hash table of callers with linear probing. The entries follow this header in memory.
struct alignas(64) answer_table {
    /// The entry is empty if `caller` is 0. A thread that adds a caller stores the answer after the
    /// caller, so in the meantime another thread may find the answer `missing`.
    struct entry {
        std::atomic<std::uintptr_t> caller;
        std::atomic<answer> is;
    };

    std::uintptr_t mask; ///< selects the address bits of a caller that are the offset of its entry
    std::atomic<std::uint32_t> used;
    struct details* more; ///< data that is rarely used

    entry& at(std::uintptr_t offset) noexcept
    {
        return *reinterpret_cast<entry*>(reinterpret_cast<std::byte*>(this + 1) + offset);
    }

    // The address serves as hash value. Calls of malloc have different return addresses, which are
    // rarely less than 16 bytes apart.
    std::uintptr_t offset_of(std::uintptr_t caller) const noexcept { return caller & mask; }
    std::uintptr_t after(std::uintptr_t offset) const noexcept
    {
        return (offset + sizeof(entry)) & mask;
    }

    [[gnu::always_inline]] answer look_up(std::uintptr_t caller) noexcept
    {
        for (std::uintptr_t offset = offset_of(caller);; offset = after(offset)) {
            // The acquire orders this load before the load of the answer.
            std::uintptr_t const found = at(offset).caller.load(std::memory_order_acquire);
            if (found == caller) [[likely]]
                return at(offset).is.load(std::memory_order_relaxed);
            if (found == 0)
                return missing;
        }
    }
};
static_assert(sizeof(answer_table::entry) == 16, "the low bits of `mask` are 0");

/// A table without callers, which is used until the plan is read, and in programs without a plan.
struct empty_answers {
    answer_table table;
    answer_table::entry entries[2];
};
[[gnu::visibility("hidden")]] extern constinit empty_answers no_answers;
[[gnu::visibility("hidden")]] extern constinit std::atomic<answer_table*> answers;

[[gnu::always_inline]] inline answer answer_of(std::uintptr_t caller) noexcept
{
    return answers.load(std::memory_order_acquire)->look_up(caller);
}

/// A function that prints a warning if the process has another build of a module than the plan.
using tell_function = void(std::span<const char> name) noexcept;

enum class start_of_plan { begun, of_another_program, without_memory };

/// Options for the table of answers.
struct answer_options {
    bool are_counted; ///< whether blocks are counted for a report
    bool is_control;  ///< whether malloc serves all blocks, as in a control run
};

/// Builds the first table. From now on, `tell` is called for each module of which the process has
/// another build than the plan.
start_of_plan begin_decisions(plan const& p, answer_options const& for_what,
                              tell_function* tell) noexcept;
/// A function that is called when a C++ runtime is loaded.
using runtime_function = void() noexcept;

/// Enables the table. Before this call, `answer_of` always returns `missing`.
void begin_answers(runtime_function* see_runtime) noexcept;

/// A place in the program that calls malloc or an operator new.
struct request_site {
    std::uintptr_t caller; ///< the return address of the function that the program called
    bool is_operator;      ///< whether that function is an operator new
};

/// Finds the answer for a request if the answer `known` in the table is not a rule. Returns a rule,
/// `to_malloc`, `ignored` or `unknown`. `here` is the stack frame of a function that the request
/// calls, directly or indirectly. `of_thread` is the thread's data about its call stack, or null if
/// these data are not available.
answer decide_slowly(answer known, request_site const& of, os::call_site here,
                     stack_knowledge* of_thread) noexcept;

/// Updates the table after modules were unloaded.
void forget_modules() noexcept;

/// Lock the table before a fork, and unlock it afterwards, so that no other thread changes the
/// table during the fork.
void lock_decisions() noexcept;
void unlock_decisions(bool is_child) noexcept;

} // namespace mallard::plan
