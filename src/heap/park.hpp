// Threads come and go; fronts stay. One whose thread has ended is parked with its slabs,
// and the next thread adopts it as it is. Until then what is free in it is there for all.
#pragma once

#include "front.hpp"
#include "limits.hpp"

namespace mallard::engine {

/// For the marks of all fronts; drawn once.
extern std::uint64_t the_key;
/// For who may be the first to need it.
std::uint64_t key_of_process() noexcept;

/// This thread's front, made or adopted if it has none yet; null: its end has begun, or
/// there is no memory for one.
[[gnu::cold]] front* own_front() noexcept;

/// The front shared by threads that can have none of their own, behind a lock. Null: there is no
/// memory.
front* take_late_front() noexcept;
void give_late_front(front& f) noexcept;
const front& late_front() noexcept;

/// Around all that a thread does with the slab side of its front.
///
/// A visitor, who holds the lock of the parked, says that the front is wanted, makes all
/// threads pass a barrier, and goes on only if its thread is not at work. The thread says
/// that it is, and waits if the front is wanted. So one of them sees the other, and the
/// thread, which comes here often, pays two stores and a load and no barrier. (The idea is
/// that of biased locks; see sync::thread_cached, which has the same.)
class at_work {
public:
    explicit at_work(front& f) noexcept : front_(f)
    {
        f.busy.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst); // the barrier is the visitor's
        if (f.wanted.load(std::memory_order_acquire) != 0) [[unlikely]]
            wait_for_visitor();
    }
    at_work(const at_work&) = delete;
    at_work& operator=(const at_work&) = delete;
    ~at_work() { front_.busy.store(0, std::memory_order_release); }

private:
    void wait_for_visitor() noexcept;

    front& front_;
};

/// After much was sent to a front: if its thread does nothing, what was sent is spliced
/// for it, and goes back whole where slabs are free.
void visit_if_idle(front& f) noexcept;

enum class visits {
    of_idle, ///< threads without a slow path since the last visit
    of_all,  ///< all threads that are not in a slow path right now
};
/// Returns the free blocks of other threads, including their lists: see visit.cpp. The caller may
/// be at work with its own front.
void visit_threads(visits which) noexcept;
/// Visits idle threads, unless some thread has just done so.
void visit_threads_soon() noexcept;

/// The thread of a visited front takes the front into use again. The caller holds `parked_lock`.
void come_home(front& f) noexcept;

/// Protects parked fronts, and the front that each thread is shown. Lock order: see fork.hpp.
extern constinit os::lock parked_lock;
/// The front that the thread of `f` is to use: `f` or its decoy. The caller holds `parked_lock`.
front* front_to_show(front& f) noexcept;

/// Calls `use(front)` with this thread's front or the one of the late.
template <class F>
[[gnu::noinline]] auto with_front(front* f, F use) noexcept
{
    if (f->is_none())
        f = own_front();
    if (f != nullptr)
        return use(*f);
    front* const late = take_late_front();
    if (late == nullptr)
        return decltype(use(*f)){};
    auto const result = use(*late);
    give_late_front(*late);
    return result;
}

/// What is cached goes to the slabs, slabs without a block in use to where they came from.
void empty(front& f) noexcept;

/// A slab with free blocks, of a front that is parked; null: there is none.
slab* adopt_slab(front& f, code c, slab_queue& q) noexcept;

/// What other threads have sent there, and to the late front, is spliced; what is free goes
/// to central.
void visit_parked() noexcept;

/// Before a request is refused: returns to central the free blocks of this thread, of idle threads
/// and of threads that have ended.
void reclaim() noexcept;

/// What `try_it` gives, if necessary after others have given back what they can.
template <class F>
[[gnu::always_inline]] inline void* insist(F try_it) noexcept
{
    void* block = within_limits(try_it);
    if (block == nullptr) [[unlikely]] {
        reclaim();
        block = try_it();
    }
    return block != nullptr ? block : os::out_of_memory();
}

/// Returns to central the free blocks of all threads that are not in a slow path right now.
void empty_all() noexcept;

/// Of all fronts there are, each linked by `next_of_all`.
front* all_fronts() noexcept;

/// Each thread that has a front sees from now on what stands before it (see sample.hpp), or
/// does no longer; so do those to come. False: no memory, and nothing has changed.
bool show_sampled_fronts(bool shown) noexcept;

// Around a fork: see fork.hpp. In the child the fronts of missing threads have no owner.
void take_fronts() noexcept;
void keep_fronts() noexcept;
void open_fronts() noexcept;
void reset_fronts() noexcept;

} // namespace mallard::engine
