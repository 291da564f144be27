// The handlers of fork.
#include "fork.hpp"

#include "decay.hpp"
#include "heap.hpp"
#include "large.hpp"
#include "limits.hpp"
#include "sample.hpp"
#include "slice_heap.hpp"
#include "threads.hpp"

#include <pthread.h>

namespace mallard::engine {

constinit os::lock guests;

void access::take() noexcept
{
    for (;;) {
        is_guest_ = !lock_.take_unless_kept();
        if (!is_guest_) [[likely]]
            return;
        guests_.take();
        if (lock_.is_kept())
            return;
        guests_.give(); // the fork is over
    }
}

void access::give() noexcept
{
    (is_guest_ ? guests_ : lock_).give();
}

namespace {

/// Forks under way in this thread that keep no lock. There are several if a signal handler
/// forks while it interrupts a fork.
constinit thread_local unsigned forks_without_locks = 0;
/// The first one of them does.
constinit thread_local bool keeps_locks = false;

} // namespace

bool can_take_locks() noexcept
{
    return !os::is_single_threaded() && os::locks_of_thread == 0 && !keeps_locks;
}

namespace {

void before_fork() noexcept
{
    if (!can_take_locks()) {
        forks_without_locks += 1;
        return;
    }
    keeps_locks = true;
    take_samples();
    lock_heaps();
    take_caches();
    the_slice_heap.its_lock().take();
    lock_of_huge().take();
    // Nobody who is waited for above waits for one of these.
    keep_samples();
    keep_caches();
    the_slice_heap.keep();
    lock_of_huge().keep();
}

void after_fork_in_parent() noexcept
{
    if (forks_without_locks != 0) {
        forks_without_locks -= 1;
        return;
    }
    {
        os::hold const no_guest_is_here(guests);
        lock_of_huge().open();
        the_slice_heap.open();
        open_caches();
    }
    unlock_heaps();
    open_samples();
    keeps_locks = false;
}

/// In the child the thread caches of missing threads stay as they are, without an owner. Blocks
/// sent to these thread caches wait for ever; those are only blocks that the missing threads owned.
void after_fork_in_child() noexcept
{
    forget_memory();
    if (forks_without_locks == 0) {
        the_slice_heap.forget_guests();
        os::locks_of_thread = 0;
        keeps_locks = false;
    } else {
        forks_without_locks -= 1;
        if (os::locks_of_thread == 0) // there was no other thread
            return;
    }
    guests.reset();
    lock_of_huge().reset();
    the_slice_heap.its_lock().reset();
    reset_caches();
    reset_heaps();
    the_limits.forget_calling_thread();
    reset_samples();
}

/// Registers our handlers before all others, so that ours runs last before the fork: the
/// other handlers may allocate.
[[gnu::constructor(101)]] void watch_forks() noexcept
{
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

} // namespace

} // namespace mallard::engine
