// How a fork uses the engine's locks, and what other threads do during the fork.
//
// The child of a fork has one thread. To leave the child a consistent state, the forking thread
// locks all locks of the engine before the fork, and unlocks them afterwards. But between the
// thread's fork handlers and the fork itself, the C library waits for its own locks. One of them is
// the lock of the list of all `FILE` streams. `fflush(NULL)` holds that lock while it waits for one
// stream, and `getline` holds the lock of that stream while it calls malloc. So a thread that may
// hold a lock of the C library must not wait for the forking thread.
//
// Therefore no thread waits for a lock that is held across a fork (`os::lock::keep`). A thread that
// needs such a lock becomes a guest. It holds the lock `guests` instead, and the forking thread
// needs that lock, too, before it releases its locks. While a thread is a guest, the data under the
// lock that is held across the fork does not change, except where a comment describes a change. A
// guest may read that data. It may allocate free slices, and marks them in bits that only guests
// write (`slice_group::guest`). It records the work that is due after the fork. In the child,
// memory that guests allocated stays allocated, and the records are discarded.
//
// The locks of heaps are the exception. The forking thread locks them, too, but calls on heaps wait
// until the fork is over.
//
// The lock order begins with the lock around reports of samples. The locks of heaps, fallback
// cache, registry, slice heap and mappings follow. The last lock is `guests`. A thread that holds
// `guests` locks no other lock. The handlers are in fork.cpp.
//
// tests/models/engine_fork.pml models this for Spin.
#pragma once

#include "../os/lock.hpp"

namespace mallard::engine {

/// Protects the data of guests (threads that call the engine while another thread forks). A thread
/// holds this lock for a few memory accesses, and never across a fork.
extern constinit os::lock guests;

/// A scoped lock. Locks `l`. If another thread holds `l` across a fork, locks `guests` instead, and
/// `is_guest` then returns true, so that the caller uses the slow path for forks.
class access {
public:
    explicit access(os::lock& l, os::lock& of_guests = guests) noexcept
        : lock_(l), guests_(of_guests)
    {
        take();
    }
    access(const access&) = delete;
    access& operator=(const access&) = delete;
    ~access() { give(); }

    bool is_guest() const noexcept { return is_guest_; }

    /// Unlocks, so that no other thread waits during the work that follows. `take` locks again.
    void give() noexcept;
    void take() noexcept;

private:
    os::lock& lock_;
    os::lock& guests_;
    bool is_guest_ = false;
};

} // namespace mallard::engine
