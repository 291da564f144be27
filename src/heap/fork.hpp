// What a fork does with the locks of the engine, and what others do meanwhile.
//
// The child of a fork has one thread. So that it finds everything whole, the thread that forks
// takes all locks before the fork, and opens them after it. But between its handlers and the fork
// the C library waits for locks of its own: that of all streams, which `fflush(NULL)` has while it
// waits for one stream, whose lock `getline` has while it calls malloc. Nobody who may have such a
// lock can wait for the thread that forks.
//
// So a lock that a fork keeps (`os::lock::keep`) is not waited for. Whoever wants it becomes a
// guest: he has another lock, that of guests, until which is free the fork does not end. What the
// kept lock protects does not change as long as he has it. He may look at it, and serve himself
// from what the fork knows nothing of, as memory beyond the frontiers; he leaves notes of what is
// to be done after the fork. In the child what guests took stays taken, and notes are forgotten.
//
// The locks of heaps are taken and not kept: calls on heaps wait for the end of a fork.
//
// Order of locks: that of calls about samples, those of heaps, late, parked, central, mappings;
// then that of guests, under which none is taken.
#pragma once

#include "../os/system.hpp"

namespace mallard::engine {

/// In a process of one thread nobody else has a lock, and a fork takes none. Nor does a fork in a
/// signal's handler that has interrupted its thread while that had a lock, or waited for one: it
/// would wait for itself. The child of such a fork may call what a signal's handler may.
bool can_take_locks() noexcept;

/// Held for a few words' time. Never over a fork.
extern constinit os::lock guests;

/// The right to what a lock protects, or to be a guest there, until it is given up.
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

    /// For a while, in which nobody waits for the caller.
    void give() noexcept;
    void take() noexcept;

private:
    os::lock& lock_;
    os::lock& guests_;
    bool is_guest_ = false;
};

} // namespace mallard::engine
