// Which rule of the plan an allocation belongs to. Most callers of malloc decide alone: one look
// into a hash table. For the others the call stack decides, a few frames of it or all.
//
// The table of answers is made from the plan for the modules that are loaded. A reader loads
// `answers` and never waits. If other modules of the plan are loaded, a new table replaces the old
// one, which stays readable. A caller that the plan does not have is added to the table when it
// first allocates, by one compare-and-swap of an empty word, so that it is looked for only once.
#pragma once

#include "answer.hpp"

#include <atomic>
#include <cstdint>

namespace mallard::plan {

constexpr unsigned answer_bits = 16;

/// A hash table of callers with linear probing: `capacity` words follow the header in memory. A
/// word is an address above an answer, or 0.
struct alignas(64) answer_table {
    unsigned shift; ///< 64 - log2(capacity)
    std::uint32_t mask;
    std::atomic<std::uint32_t> used;
    struct details* more; ///< what is seldom needed

    std::atomic<std::uint64_t>* words() noexcept
    {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(this + 1);
    }

    [[gnu::always_inline]] answer look_up(std::uintptr_t caller) noexcept
    {
        std::uint64_t const wanted = std::uint64_t{caller} << answer_bits;
        for (std::size_t at = index_of(caller);; at = (at + 1) & mask) {
            std::uint64_t const word = words()[at].load(std::memory_order_relaxed);
            if (std::uint64_t const rest = word ^ wanted; rest >> answer_bits == 0) [[likely]]
                return static_cast<answer>(rest);
            if (word == 0)
                return missing;
        }
    }

    std::size_t index_of(std::uintptr_t caller) const noexcept
    {
        return caller * 0x9e3779b97f4a7c15 >> shift;
    }
};

/// A table without callers, for the time before the plan is read and for programs without a plan.
struct empty_answers {
    answer_table table;
    std::atomic<std::uint64_t> words[2];
};
extern constinit empty_answers no_answers;
extern constinit std::atomic<answer_table*> answers;

[[gnu::always_inline]] inline answer answer_of(std::uintptr_t caller) noexcept
{
    return answers.load(std::memory_order_acquire)->look_up(caller);
}

/// Prints that the process has another build of a module.
using tell_function = void(std::span<const char> name) noexcept;

enum class start_of_plan { begun, of_another_program, without_memory };

/// Makes the first table. Now and later, calls `tell` for a module of the plan of which the process
/// has another build.
start_of_plan begin_decisions(plan const& p, tell_function* tell) noexcept;
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
