// What a fork does with the engine's locks, and what other threads do during the fork.
//
// The child of a fork has one thread. To leave the child a consistent state, the thread that forks
// takes all locks before the fork, and releases them after it. But after the thread's fork handlers
// have run, and before the fork itself, the C library waits for locks of its own. One of them is
// the lock of the list of all streams. `fflush(NULL)` holds that lock while it waits for one
// stream, and `getline` holds the lock of that stream while it calls malloc. So a thread that may
// hold a lock of the C library must not wait for the thread that forks.
//
// Therefore no thread waits for a lock that a fork keeps (`os::lock::keep`). A thread that wants
// such a lock becomes a guest: it takes the lock of guests instead, and the fork does not end
// before that lock is free. While a thread is a guest, the data under the kept lock does not
// change, except where a comment says so. A guest may read that data. It may take free slices, and
// marks them in bits that only guests write (`slice_group::guest`). It records the work that is due
// after the fork. In the child, memory that guests allocated stays allocated, and their records
// are forgotten.
//
// The locks of heaps are taken but not kept: calls on heaps wait for the end of a fork.
//
// Lock order: first the lock around reports of samples, then the locks of heaps, fallback cache,
// registry, slice heap and mappings, and last the lock of guests. A thread that holds the lock of
// guests takes no other lock. The handlers are in fork.cpp.
//
// tests/models/engine_fork.pml models this for Spin.
#pragma once

#include "../os/lock.hpp"

namespace mallard::engine {

/// Protects the data of guests, which are threads that call the engine while another thread forks.
/// Held for a few memory accesses, and never across a fork.
extern constinit os::lock guests;

/// Scoped lock: holds the lock `l`, or makes this thread a guest if a fork keeps `l`.
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
