// The local allocators (instances) of one thread.
#pragma once

#include "decision.hpp"
#include "instance.hpp"

#include <limits.h>

namespace mallard::plan {

/// The instances of a thread. When the thread exits, a new thread reclaims them, with the blocks
/// that are still in use. The memory is never returned, so a late free by another thread still
/// finds an instance.
struct thread_rules {
    counter unknown; ///< allocations whose call stack is not in the plan
    thread_rules* next_of_all;
    thread_rules* next_idle;
    int exit_rounds;
    stack_knowledge stack;
    instance* of[mallard_plan_rules_max]; ///< an instance for each rule of the plan

    /// Returns the table of bins that serve requests quickly. For each answer the table has a row.
    /// Element (n - 1) / 16 of the row is the bin for requests of n bytes, or `no_bin` if such a
    /// request cannot be served quickly. So the fast path need not test the kind of the allocator
    /// or its largest block. The table follows this object in memory.
    bin** quick_bins() noexcept { return reinterpret_cast<bin**>(this + 1); }
};

/// The instances of this thread. Null if the thread has not allocated by a rule yet, or is exiting.
[[gnu::visibility("hidden")]] extern constinit thread_local thread_rules* own_rules;
/// The same as `own_rules`, but null while the thread is changing an instance. So a signal handler
/// that interrupts the change allocates from malloc, and frees blocks as another thread would.
[[gnu::visibility("hidden")]] extern constinit thread_local std::atomic<thread_rules*> ready_rules;

inline thread_rules* ready() noexcept
{
    return ready_rules.load(std::memory_order_relaxed);
}

/// Creates or reclaims the instances of the calling thread. Returns null if there is no memory, if
/// the lock is not available, or if the thread is exiting.
thread_rules* begin_thread() noexcept;

/// Prepares for threads that allocate by rules. An exiting thread abandons its instances in round
/// `last_round` of the destructors of thread-specific data. Returns false if the process has no key
/// for thread-specific data left.
bool begin_threads(std::size_t rule_count, int last_round = PTHREAD_DESTRUCTOR_ITERATIONS) noexcept;

/// Returns the first of all `thread_rules`, which are linked by `next_of_all`.
thread_rules* all_threads() noexcept;

/// Lock the list of idle instances before a fork, and unlock the list afterwards. During the fork,
/// no other thread creates or reclaims instances.
void lock_threads() noexcept;
void unlock_threads(bool is_child) noexcept;

/// A scope in which signal handlers do not use the instances of this thread.
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
