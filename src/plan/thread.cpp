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

/// Room for the frames of a call stack. Only pages that are used take memory.
constexpr std::size_t frames_max = 2048;
constexpr std::size_t frames_bytes = frames_max * sizeof(os::stack_frame);

constinit short_lock idle_lock;         ///< protects `idle`, and the head of `all`
constinit thread_rules* idle = nullptr; ///< of threads that have ended
/// Of threads that have ended, and not in `idle` yet. A thread that ends needs no lock.
constinit std::atomic<thread_rules*> ended{nullptr};
constinit std::atomic<thread_rules*> all{nullptr};

/// Runs when a thread exits, and again after the destructors of the thread's other keys, which may
/// allocate and free.
void end_thread(void* of_thread) noexcept
{
    auto& t = *static_cast<thread_rules*>(of_thread);
    if (++t.exit_rounds < last_exit_round) {
        ::pthread_setspecific(at_thread_exit, &t);
        return;
    }
    has_ended = true;
    own_rules = nullptr;
    if (ready() == nullptr) // a signal handler ends the thread while it is changing an instance
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

/// Fills the row of a rule. A request may be up to 15 bytes larger than the largest block of the
/// rule, as far as its bin has room.
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
    auto& t = *reinterpret_cast<thread_rules*>(at); // mapped memory reads as zero
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
    t->stack = {.last = {.frames = t->stack.last.frames}, .region = {}}; // of another thread
    own_rules = t;
    busy const now(*t); // pthread_setspecific may allocate
    if (::pthread_setspecific(at_thread_exit, t) != 0)
        t->exit_rounds = last_exit_round; // the instances stay with this thread
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

// The system copies the memory of a process page by page while other threads go on. The child may
// see the head of a list with a block that another thread has just freed, and the block as it was
// before. So the parent takes what it has in these lists before, and the child forgets what came
// since: those blocks are not used again.
//
// The instances of a thread that ends during the fork may be copied in part before and in part
// after the end, so the child does not use them.
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
        if (!idle_lock.is_mine()) // another thread was perhaps changing the list
            idle = nullptr;
        for (thread_rules* t = all_threads(); t != nullptr; t = t->next_of_all)
            for (std::size_t i = 0; i < rule_count; ++i)
                forget_freed_elsewhere(*t->of[i]);
    }
    idle_lock.unlock_after_fork(is_child);
}

} // namespace mallard::plan
