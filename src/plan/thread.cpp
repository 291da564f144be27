#include "thread.hpp"

#include "../os/errno_kept_linux.hpp"
#include "../os/memory.hpp"
#include "short_lock.hpp"

#include <algorithm>

#include <pthread.h>

namespace mallard::plan {

constinit thread_local thread_rules* own_rules = nullptr;
constinit thread_local std::atomic<thread_rules*> ready_rules = nullptr;

namespace {

constinit pthread_key_t at_thread_exit;
constinit std::size_t rule_count = 0;
constinit int last_exit_round = PTHREAD_DESTRUCTOR_ITERATIONS;
constinit thread_local bool has_ended = false;

/// The room for the frames of a call stack. Only pages that are touched use memory.
constexpr std::size_t frames_max = 2048;
constexpr std::size_t frames_bytes = frames_max * sizeof(os::stack_frame);

constinit short_lock idle_lock;         ///< protects `idle`, and the head of `all`
constinit thread_rules* idle = nullptr; ///< instances of threads that have exited
/// Instances of exited threads that are not in `idle` yet. A thread that exits pushes its instances
/// here, and needs no lock.
constinit std::atomic<thread_rules*> ended{nullptr};
constinit std::atomic<thread_rules*> all{nullptr};

/// Runs when a thread exits, and again in each later round of thread-specific data destructors,
/// because other destructors may allocate and free. In the last round, abandons the instances of
/// the thread.
void end_thread(void* of_thread) noexcept
{
    auto& t = *static_cast<thread_rules*>(of_thread);
    if (++t.exit_rounds < last_exit_round) {
        ::pthread_setspecific(at_thread_exit, &t);
        return;
    }
    has_ended = true;
    own_rules = nullptr;
    if (ready() == nullptr) // a signal handler ended the thread during a change of an instance
        return;
    ready_rules.store(nullptr, std::memory_order_relaxed);
    thread_rules* first = ended.load(std::memory_order_relaxed);
    do
        t.next_idle = first;
    while (!ended.compare_exchange_weak(first, &t, std::memory_order_release,
                                        std::memory_order_relaxed));
}

thread_rules* take_idle() noexcept
{
    if (idle == nullptr)
        idle = ended.exchange(nullptr, std::memory_order_acquire);
    thread_rules* const t = idle;
    if (t != nullptr)
        idle = t->next_idle;
    return t;
}

/// Fills the part of the table `quick_bins` that maps request sizes to the bins of one rule. The
/// last entry also serves requests up to 15 bytes larger than the largest block of the rule,
/// because block sizes are rounded up to a multiple of 16.
void fill_row(bin** row, instance& in) noexcept
{
    for (std::size_t i = 0; i < row_bins; ++i)
        row[i] = in.rule->is_quick && i * 16 < in.rule->block_bytes ? &in.bin_for((i + 1) * 16)
                                                                    : &no_bin;
}

thread_rules* make() noexcept
{
    std::size_t const bin_count = answer_of_rule(rule_count);
    std::byte* const at = os::map(sizeof(thread_rules) + bin_count * sizeof(bin*) +
                                  rule_count * sizeof(instance) + frames_bytes);
    if (at == nullptr)
        return nullptr;
    auto& t = *reinterpret_cast<thread_rules*>(at); // mapped memory is zeroed
    bin** const bins = t.quick_bins();
    std::fill_n(bins, std::size_t{first_rule}, &no_bin);
    auto* const instances = reinterpret_cast<instance*>(bins + bin_count);
    auto* const frames = reinterpret_cast<os::stack_frame*>(instances + rule_count);
    t.stack.last.frames = {frames, frames_max};
    for (std::size_t i = 0; i < rule_count; ++i) {
        instance& in = instances[i];
        in.thread = &t;
        in.rule = &rules[i];
        in.allocator = rules[i].allocator;
        in.bytes_max = rules[i].is_timed ? 0 : rules[i].block_bytes;
        t.of[i] = &in;
        fill_row(bins + answer_of_rule(i), in);
    }
    t.next_of_all = all.load(std::memory_order_relaxed);
    all.store(&t, std::memory_order_release);
    return &t;
}

} // namespace

[[gnu::noinline]] thread_rules* begin_thread() noexcept
{
    if (has_ended)
        return nullptr;
    os::errno_kept const kept;
    if (!idle_lock.try_take())
        return nullptr;
    thread_rules* t = take_idle();
    if (t == nullptr)
        t = make();
    idle_lock.give();
    if (t == nullptr)
        return nullptr;
    t->exit_rounds = 0;
    t->stack = {.last = {.frames = t->stack.last.frames}, .region = {}}; // was another thread's
    own_rules = t;
    busy const now(*t); // pthread_setspecific may allocate
    if (::pthread_setspecific(at_thread_exit, t) != 0)
        t->exit_rounds = last_exit_round; // no other thread will reclaim the instances
    return t;
}

bool begin_threads(std::size_t count, int last_round) noexcept
{
    rule_count = count;
    last_exit_round = last_round;
    return ::pthread_key_create(&at_thread_exit, end_thread) == 0;
}

thread_rules* all_threads() noexcept
{
    return all.load(std::memory_order_acquire);
}

// During a fork, the system copies the memory of the process page by page while other threads
// continue. The child may see a new list head that points to a block which another thread has just
// freed, but the block with its old content. So the forking thread empties these lists before the
// fork, and the child discards what was added since. The child does not use the discarded blocks
// again.
//
// If a thread exits during the fork, some pages of its instances may be copied before its exit and
// others afterwards. So the child does not use these instances.
void lock_threads() noexcept
{
    if (idle_lock.lock_for_fork()) {
        thread_rules* t = ended.exchange(nullptr, std::memory_order_acquire);
        while (t != nullptr) {
            thread_rules* const after = t->next_idle;
            t->next_idle = idle;
            idle = t;
            t = after;
        }
    }
    thread_rules* const t = ready();
    if (t == nullptr)
        return;
    busy const now(*t);
    for (std::size_t i = 0; i < rule_count; ++i)
        take_freed_elsewhere(*t->of[i]);
}

void unlock_threads(bool is_child) noexcept
{
    if (is_child) {
        ended.store(nullptr, std::memory_order_relaxed);
        if (!idle_lock.is_mine()) // another thread may have been changing the list
            idle = nullptr;
        for (thread_rules* t = all_threads(); t != nullptr; t = t->next_of_all)
            for (std::size_t i = 0; i < rule_count; ++i)
                forget_freed_elsewhere(*t->of[i]);
    }
    idle_lock.unlock_after_fork(is_child);
}

} // namespace mallard::plan
