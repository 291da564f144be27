// Which rule of the plan an allocation belongs to. Most callers of malloc decide alone: one look
// into a hash table. For the others the call stack decides, a few frames of it or all.
//
// The table of answers is made from the plan for the modules that are loaded. A reader loads
// `answers` and never waits. If other modules of the plan are loaded, a new table replaces the old
// one, which stays readable. A caller that the plan does not have is added to the table when it
// first allocates, by one compare-and-swap of an empty entry, so that it is looked for only once.
#pragma once

#include "answer.hpp"

#include <atomic>
#include <cstdint>

namespace mallard::plan {

/// A hash table of callers with linear probing: its entries follow the header in memory.
struct alignas(64) answer_table {
    /// Empty if `caller` is 0. A thread that adds a caller stores the answer after the caller, so
    /// another thread may find `missing` meanwhile.
    struct entry {
        std::atomic<std::uintptr_t> caller;
        std::atomic<answer> is;
    };

    std::uintptr_t mask; ///< selects the bits of a caller that are the offset of its entry
    std::atomic<std::uint32_t> used;
    struct details* more; ///< what is seldom needed

    entry& at(std::uintptr_t offset) noexcept
    {
        return *reinterpret_cast<entry*>(reinterpret_cast<std::byte*>(this + 1) + offset);
    }

    // The address is its own hash. Calls of malloc have different addresses by nature, and seldom
    // lie less than 16 bytes apart.
    std::uintptr_t offset_of(std::uintptr_t caller) const noexcept { return caller & mask; }
    std::uintptr_t after(std::uintptr_t offset) const noexcept
    {
        return (offset + sizeof(entry)) & mask;
    }

    [[gnu::always_inline]] answer look_up(std::uintptr_t caller) noexcept
    {
        for (std::uintptr_t offset = offset_of(caller);; offset = after(offset)) {
            // The acquire orders this load before that of the answer.
            std::uintptr_t const found = at(offset).caller.load(std::memory_order_acquire);
            if (found == caller) [[likely]]
                return at(offset).is.load(std::memory_order_relaxed);
            if (found == 0)
                return missing;
        }
    }
};
static_assert(sizeof(answer_table::entry) == 16, "the low bits of `mask` are 0");

/// A table without callers, for the time before the plan is read and for programs without a plan.
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

/// Prints that the process has another build of a module.
using tell_function = void(std::span<const char> name) noexcept;

enum class start_of_plan { begun, of_another_program, without_memory };

/// What the answers are for.
struct answer_options {
    bool are_counted; ///< somebody asks how many blocks each answer has
    bool is_control;  ///< malloc serves all blocks
};

/// Makes the first table. Now and later, calls `tell` for a module of the plan of which the process
/// has another build.
start_of_plan begin_decisions(plan const& p, answer_options const& for_what,
                              tell_function* tell) noexcept;
/// Is called when a C++ runtime is loaded.
using runtime_function = void() noexcept;

/// From now on, `answer_of` answers.
void begin_answers(runtime_function* see_runtime) noexcept;

/// A call of malloc or of an operator new.
struct request_site {
    std::uintptr_t caller; ///< the return address of the function that the program called
    bool is_operator;      ///< whether that function is an operator new
};

/// Decides about a caller whose answer in the table is no rule. Returns a rule, `to_malloc`, or
/// `unknown`. `here` is the frame of a function that the request has called, directly or not.
/// `of_thread` is what the thread knows; null: it is not available.
answer decide_slowly(answer known, request_site const& of, os::call_site here,
                     stack_knowledge* of_thread) noexcept;

/// Must be called after modules were unloaded.
void forget_modules() noexcept;

/// Around a fork: no other thread changes the table meanwhile.
void lock_decisions() noexcept;
void unlock_decisions(bool is_child) noexcept;

} // namespace mallard::plan
