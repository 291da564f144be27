// What the hooks of malloc's family and of the operators do for blocks of rules. The hooks
// themselves are a look at the table of answers, and a jump.
#pragma once

#include "../preload/next.hpp"
#include "decision.hpp"
#include "thread.hpp"

#include <cstring>

namespace mallard::plan {

/// Where the calling hook returns to.
[[gnu::always_inline]] inline std::uintptr_t return_address() noexcept
{
    return os::without_signature(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)));
}

/// What the hooks know of a request.
struct request {
    answer known; ///< from the table of answers
    bool is_operator;
    std::uint8_t align_log2;
    std::uintptr_t caller;
    std::size_t bytes;
};

/// Allocates as almost all requests do whose caller has a rule. Null: the functions below serve the
/// request. The answer must not be of malloc.
[[gnu::always_inline]] inline void* allocate_quickly(answer known, std::size_t bytes) noexcept
{
    thread_rules* const t = ready();
    // A request of 0 bytes is larger than any block in this comparison.
    if (bytes - 1 >= quick_bytes_max || t == nullptr) [[unlikely]]
        return nullptr;
    busy const now(*t);
    return take_quickly(*t->quick_bins()[known + (bytes - 1) / 16], bytes);
}

/// The instance that serves a request without a walk of the stack and without a new chunk, if it
/// has such a block; null: `allocate_slowly` decides.
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

/// Counts a request whose caller the plan does not have. False: the plan may have its stack, or the
/// thread has no counter yet.
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

/// Decides about a request that the functions above do not serve, and allocates. Null: malloc has
/// to serve the request.
void* allocate_slowly(request const& r) noexcept;

/// Frees a block of a rule. `t` is what `ready` returns.
void free_slowly(chunk& c, void* block, thread_rules* t) noexcept;

/// Frees a block of a rule.
[[gnu::always_inline]] inline void free_of_rule(void* block) noexcept
{
    chunk& c = chunk_of(block);
    thread_rules* const t = ready();
    if (c.quick_thread != reinterpret_cast<std::uintptr_t>(t)) [[unlikely]]
        return free_slowly(c, block, t);
    busy const now(*t);
    push(*c.list, block);
}

/// Serves realloc of a block of a rule.
void* reallocate_of_rule(void* block, std::size_t bytes) noexcept;

} // namespace mallard::plan
