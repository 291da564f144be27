// The instances of one thread.
#pragma once

#include "decision.hpp"
#include "instance.hpp"

#include <limits.h>

namespace mallard::plan {

/// The instances of a thread. When the thread ends, the next new thread takes them over with the
/// blocks that are still in use. The memory is never returned, so a free by another thread that
/// comes late still finds an instance.
struct thread_rules {
    counter unknown; ///< allocations whose call stack the plan does not have
    thread_rules* next_of_all;
    thread_rules* next_idle;
    int exit_rounds;
    stack_knowledge stack;
    instance* of[mallard_plan_rules_max]; ///< one for each rule of the plan

    /// The row of an answer has the bins that serve it quickly: the bin of a request of n bytes is
    /// bin (n - 1) / 16 of the row. `no_bin` stands for all that is not so simple, so the quick
    /// path needs to know neither the kind of the allocator nor its largest block. The bins follow
    /// in memory.
    bin** quick_bins() noexcept { return reinterpret_cast<bin**>(this + 1); }
};

/// Null: the thread has not allocated by a rule yet, or has ended.
[[gnu::visibility("hidden")]] extern constinit thread_local thread_rules* own_rules;
/// `own_rules`, but null while the thread is changing an instance. A signal handler that interrupts
/// the change then allocates from malloc, and frees blocks as another thread would.
[[gnu::visibility("hidden")]] extern constinit thread_local std::atomic<thread_rules*> ready_rules;

inline thread_rules* ready() noexcept
{
    return ready_rules.load(std::memory_order_relaxed);
}

/// Gives the calling thread its instances. Null: there is no memory, or the thread has ended.
thread_rules* begin_thread() noexcept;

/// Prepares for threads. A thread ends in this round of destructors of thread-specific data. False:
/// the process has no key for thread-specific data left.
bool begin_threads(std::size_t rule_count, int last_round = PTHREAD_DESTRUCTOR_ITERATIONS) noexcept;

/// The instances of all threads, linked by `next_of_all`.
thread_rules* all_threads() noexcept;

/// Around a fork: no other thread begins or ends meanwhile.
void lock_threads() noexcept;
void unlock_threads(bool is_child) noexcept;

/// While it lives, a signal handler does not use the instances of this thread.
class busy {
public:
    explicit busy(thread_rules& t) noexcept : thread_(t) { set(nullptr); }
    ~busy() { set(&thread_); }
    busy(busy const&) = delete;
    busy& operator=(busy const&) = delete;

private:
    static void set(thread_rules* t) noexcept
    {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        ready_rules.store(t, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    thread_rules& thread_;
};

} // namespace mallard::plan
