// The fork handlers. The forking thread locks all locks of the engine before the fork. It marks all
// locks except those of heaps as held across the fork. No other thread waits for a lock with that
// mark (see `guests.hpp`).
#include "fork.hpp"

#include "guests.hpp"
#include "heap.hpp"
#include "large.hpp"
#include "limits.hpp"
#include "sample.hpp"
#include "slice_heap.hpp"
#include "threads.hpp"

#include <pthread.h>

namespace mallard::engine {
namespace {

/// The number of forks under way in this thread that did not lock the engine's locks. The number
/// exceeds 1 if a signal handler interrupts a fork and forks again.
constinit thread_local unsigned forks_without_locks = 0;
/// Whether a fork under way in this thread holds the engine's locks.
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
    take_sample_lock();
    lock_heaps();
    take_cache_locks();
    the_slice_heap.its_lock().take();
    lock_of_huge().take();
    // This thread now holds all locks. Mark all locks except those of heaps as held across the
    // fork. From here on, other threads do not wait for the marked locks, but use the slow path for
    // forks (see `guests.hpp`).
    keep_sample_lock();
    keep_cache_locks();
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
        open_cache_locks();
    }
    unlock_heaps();
    open_sample_lock();
    keeps_locks = false;
}

/// Runs in the child of a fork. The caches of threads that do not exist in the child stay as they
/// are, and no thread uses these caches. Nothing reads the remote frees in their inboxes. The only
/// memory that is lost is in the slabs of these caches.
void after_fork_in_child() noexcept
{
    if (forks_without_locks == 0) {
        the_slice_heap.forget_guests();
        os::locks_of_thread = 0;
        keeps_locks = false;
    } else {
        forks_without_locks -= 1;
        if (os::locks_of_thread == 0) // the parent had no other thread
            return;
    }
    guests.reset();
    lock_of_huge().reset();
    the_slice_heap.its_lock().reset();
    reset_cache_locks();
    reset_heaps();
    the_limits.forget_calling_thread();
    reset_sample_lock();
}

/// Registers the engine's fork handlers before all other handlers. Before a fork, the C library
/// calls handlers in reverse order, so it calls the engine's handler last. The other handlers may
/// thus allocate.
[[gnu::constructor(101)]] void watch_forks() noexcept
{
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

} // namespace

} // namespace mallard::engine
