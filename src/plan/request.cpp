#include "request.hpp"

#include <algorithm>

namespace mallard::plan {

namespace {

/// Allocates with the allocator of a rule. Returns null if malloc must serve the request.
void* allocate_by_rule(std::size_t rule, std::size_t bytes, unsigned align_log2) noexcept
{
    if (own_rules == nullptr)
        begin_thread();
    thread_rules* const t = ready();
    if (t == nullptr)
        return nullptr;
    busy const now(*t);
    instance& in = *t->of[rule];
    count(in, bytes);
    if (bytes == 0 || bytes > in.rule->block_bytes || align_log2 > 4) {
        in.large.add(1);
        return nullptr;
    }
    if (in.allocator == 0)
        return nullptr; // in a control run, malloc serves all requests
    in.end_of.begin = 0;
    void* const quick = take(in, bytes);
    void* const block = quick != nullptr ? quick : take_slowly(in, bytes);
    if (block == nullptr)
        in.refused.add(1);
    return block;
}

/// Finds the rule of a request by its call stack. The stack is compared with the last stack of the
/// thread, unless a signal handler that has interrupted such a comparison calls this function.
answer decide(request const& r, os::call_site here) noexcept
{
    // If the table lacks the caller, the plan may not have been read yet. `begin_thread` must not
    // be called before the plan is read.
    if (own_rules == nullptr && r.known != missing)
        begin_thread();
    thread_rules* const t = ready();
    request_site const of{r.caller, r.is_operator};
    if (t == nullptr)
        return decide_slowly(r.known, of, here, nullptr);
    busy const now(*t);
    return decide_slowly(r.known, of, here, &t->stack);
}

} // namespace

[[gnu::noinline]] void* allocate_slowly(request const& r) noexcept
{
    answer const is = decide(r, os::caller());
    if (is_rule(is))
        return allocate_by_rule(rule_of(is), r.bytes, r.align_log2);
    if (is == unknown) {
        thread_rules* const t = own_rules != nullptr ? own_rules : begin_thread();
        if (t != nullptr)
            t->unknown.add(1);
    }
    return nullptr;
}

namespace {

bool is_of(thread_rules* t, instance const& in) noexcept
{
    return t != nullptr && in.thread == t;
}

/// Frees a block of another thread's instance, or a block whose free is counted or timed.
[[gnu::noinline]] void free_unquickly(chunk& c, void* block, thread_rules* t) noexcept
{
    instance& in = *c.owner;
    if (!is_of(t, in)) [[unlikely]]
        return give_from_elsewhere(in, c, block);
    busy const now(*t);
    if (in.rule->is_timed) [[unlikely]]
        return give_timed(in, c, block);
    give(in, c, block);
}

/// Frees a block in an arena, or in a multipool over an arena. The block may be the last block of
/// its chunk or instance.
[[gnu::noinline]] void free_slowly(chunk& c, void* block, thread_rules* t) noexcept
{
    std::uintptr_t const kind = c.quick_thread - reinterpret_cast<std::uintptr_t>(t);
    if (kind != counting && kind != in_arena) [[unlikely]]
        return free_unquickly(c, block, t);
    busy const now(*t);
    give_quickly(c, block);
}

} // namespace

[[gnu::noinline]] void free_of_rule(void* block) noexcept
{
    chunk& c = chunk_of(block);
    thread_rules* const t = ready();
    std::uintptr_t const kind = c.quick_thread - reinterpret_cast<std::uintptr_t>(t);
    if (kind == 0) {
        busy const now(*t);
        return push(*c.list, block);
    }
    if (kind == in_arena && c.live > 1) {
        busy const now(*t);
        c.live -= 1;
        return;
    }
    if (kind == counting && c.owner->live > 1) {
        busy const now(*t);
        c.owner->live -= 1;
        c.owner->frees += 1;
        return push(*c.list, block);
    }
    free_slowly(c, block, t);
}

namespace {

constinit rule_state scratch_rule{};
constinit instance scratch{};

/// Measures several times how long a sequence takes that frees `count` blocks. Returns the shortest
/// time in ticks, or 0 on failure.
std::uint64_t time_of_frees(std::size_t count) noexcept
{
    void* blocks[64];
    std::uint64_t least = UINT64_MAX;
    for (int round = 0; round < 64; ++round) {
        for (std::size_t i = 0; i < count; ++i) {
            busy const now(*scratch.thread);
            blocks[i] = take_slowly(scratch, 48);
            if (blocks[i] == nullptr)
                return 0;
        }
        std::uint64_t const before = scratch.end_of.ticks.value();
        std::uint64_t const frees = scratch.end_of.frees.value();
        for (std::size_t i = 0; i < count; ++i)
            free_of_rule(blocks[i]);
        // If the thread was interrupted, a new sequence has begun, so fewer frees were measured.
        if (scratch.end_of.frees.value() - frees == count)
            least = std::min(least, scratch.end_of.ticks.value() - before);
    }
    return least != UINT64_MAX ? least : 0;
}

} // namespace

cost_of_measuring measure_cost() noexcept
{
    scratch.thread = ready();
    if (scratch.thread == nullptr)
        return {0, 0};
    scratch_rule.allocator = scratch.allocator = mallard_plan_arena;
    scratch_rule.is_timed = true;
    scratch.rule = &scratch_rule;
    constexpr std::uint64_t many = 64;
    double const ps = 1000 * nanoseconds_per_tick();
    auto const one = static_cast<std::uint64_t>(ps * static_cast<double>(time_of_frees(1)));
    auto const all = static_cast<std::uint64_t>(ps * static_cast<double>(time_of_frees(many)));
    std::uint64_t const each = all > one ? (all - one) / (many - 1) : 0;
    return {one > each ? one - each : 0, each};
}

[[gnu::noinline]] void* reallocate_of_rule(void* block, std::size_t bytes) noexcept
{
    if (bytes == 0) {
        // Free the block, as the next allocator's realloc does for size 0, and return what that
        // realloc returns.
        free_of_rule(block);
        return preload::next.realloc(preload::next.malloc(1), 0);
    }
    chunk& c = chunk_of(block);
    instance& in = *c.owner;
    std::size_t const usable = usable_bytes(c, block);
    if (bytes <= usable && bytes >= usable / 2)
        return block;
    if (c.block_bytes == 0 && is_of(ready(), in)) {
        busy const now(*in.thread);
        if (bytes <= in.rule->block_bytes && extend(in, c, block, bytes))
            return block;
    }
    // The new block belongs to the same rule as the old block, as in a replay.
    void* moved = allocate_by_rule(static_cast<std::size_t>(in.rule - rules), bytes, 0);
    if (moved == nullptr)
        moved = preload::next.malloc(bytes);
    if (moved == nullptr)
        return nullptr;
    std::memcpy(moved, block, bytes < usable ? bytes : usable);
    free_of_rule(block);
    return moved;
}

} // namespace mallard::plan
