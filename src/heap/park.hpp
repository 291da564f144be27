// Threads come and go; fronts stay. One whose thread has ended is parked with its slabs,
// and the next thread adopts it as it is. Until then what is free in it is there for all.
#pragma once

#include "front.hpp"

namespace mallard::engine {

/// For the marks of all fronts; drawn once.
extern std::uint64_t the_key;
/// For who may be the first to need it.
std::uint64_t key_of_process() noexcept;

/// This thread's front, made or adopted if it has none yet; null: its end has begun, or
/// there is no memory for one.
front* own_front() noexcept;

/// For threads that have none and get none: one for all of them, behind a lock.
front& take_late_front() noexcept;
void give_late_front() noexcept;

/// Calls `use(front)` with this thread's front or the one of the late.
template <class F>
[[gnu::noinline]] auto with_front(front* f, F use) noexcept
{
    if (f->tag == 0)
        f = own_front();
    if (f != nullptr)
        return use(*f);
    front& late = take_late_front();
    auto const result = use(late);
    give_late_front();
    return result;
}

/// What is cached goes to the slabs, slabs without a block in use to where they came from.
void empty(front& f) noexcept;

/// A slab with free blocks, of a front that is parked; null: there is none.
slab* adopt_slab(front& f, code c, slab_queue& q) noexcept;

/// What other threads have sent there is spliced, what is free goes to central.
void visit_parked() noexcept;

/// Of all fronts there are, each linked by `next_of_all`.
front* all_fronts() noexcept;

/// Around fork: no lock is held by anybody who is not there any more.
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

} // namespace mallard::engine
