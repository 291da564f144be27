// Serves the calls of malloc's family and of the operators for which the plan has a rule. The hooks
// themselves (hooks.cpp, operators.cpp) only look up the caller in the table of answers.
#pragma once

#include "../preload/next.hpp"
#include "decision.hpp"
#include "thread.hpp"

#include <cstring>

namespace mallard::plan {

/// Returns the return address of the hook that calls this function.
[[gnu::always_inline]] inline std::uintptr_t return_address() noexcept
{
    return os::without_signature(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)));
}

/// An allocation request, as the hooks see it.
struct request {
    answer known; ///< the answer for the caller in the table of answers
    bool is_operator;
    std::uint8_t align_log2;
    std::uintptr_t caller;
    std::size_t bytes;
};

/// Allocates with few instructions. Almost all requests whose caller has a rule are served in this
/// way. Returns null if one of the functions below must serve the request. Must not be called if
/// the answer is that malloc serves the request.
[[gnu::always_inline]] inline void* allocate_quickly(answer known, std::size_t bytes) noexcept
{
    thread_rules* const t = ready();
    // A request of 0 bytes is larger than any block in this comparison.
    if (bytes - 1 >= quick_bytes_max || t == nullptr) [[unlikely]]
        return nullptr;
    busy const now(*t);
    return take_quickly(*t->quick_bins()[known + (bytes - 1) / 16], bytes);
}

/// An answer, and the block if the request was served quickly.
struct served {
    answer is;
    void* block;
};

/// Serves a request whose caller does not decide alone, if a call of the plan's region is active.
/// If no call is active, returns `known` and no block. `here` is the stack frame of a function that
/// the request calls.
[[gnu::always_inline]] inline served
serve_in_region(answer known, std::size_t bytes, unsigned align_log2, os::call_site here) noexcept
{
    thread_rules* const t = ready();
    if (!is_by_walk(known) || t == nullptr)
        return {known, nullptr};
    busy const now(*t);
    region_call const& region = t->stack.region;
    if (!region.is_active(here)) [[unlikely]]
        return {known, nullptr};
    answer const is = region.rule;
    if (is_of_malloc(is) || bytes - 1 >= quick_bytes_max || align_log2 > 4) [[unlikely]]
        return {is, nullptr};
    return {is, take_quickly(*t->quick_bins()[is + (bytes - 1) / 16], bytes)};
}

/// Returns the allocator instance that may serve a request without a walk of the call stack.
/// Returns null if `allocate_slowly` must serve the request.
[[gnu::always_inline]] inline instance* instance_of(answer known, std::size_t bytes,
                                                    unsigned align_log2) noexcept
{
    thread_rules* const t = ready();
    if (!is_rule(known) || t == nullptr) [[unlikely]]
        return nullptr;
    instance& in = *t->of[rule_of(known)];
    if (bytes - 1 >= in.bytes_max || align_log2 > 4) [[unlikely]]
        return nullptr;
    return &in;
}

/// Counts a request and returns true if the plan does not contain its caller. Otherwise, or if the
/// thread has no counter yet, returns false.
[[gnu::always_inline]] inline bool count_unknown(answer known) noexcept
{
    thread_rules* const t = own_rules;
    if (known != unknown || t == nullptr)
        return false;
    t->unknown.add(1);
    return true;
}

[[gnu::always_inline]] inline void count(instance& in, std::size_t bytes) noexcept
{
    in.blocks.add(1);
    in.bytes.add(bytes);
}

[[gnu::always_inline]] inline void* take_counted(instance& in, std::size_t bytes) noexcept
{
    busy const now(*in.thread);
    void* const block = take(in, bytes);
    if (block != nullptr)
        count(in, bytes);
    return block;
}

/// Finds the rule of a request that the functions above do not serve, and allocates. Returns null
/// if malloc must serve the request.
void* allocate_slowly(request const& r) noexcept;

/// Frees a block that a rule allocated.
void free_of_rule(void* block) noexcept;

/// The time in picoseconds that this library itself takes in a sequence of frees that it measures
/// (see `ending`). `sequence` is the time for the sequence, and `free` the additional time for each
/// free. A program that frees all blocks together does not save this time.
struct cost_of_measuring {
    std::uint64_t sequence;
    std::uint64_t free;
};

/// Measures the cost in the calling thread. Returns zeros if the thread has no instances.
cost_of_measuring measure_cost() noexcept;

/// Serves realloc for a block that a rule allocated.
void* reallocate_of_rule(void* block, std::size_t bytes) noexcept;

} // namespace mallard::plan
