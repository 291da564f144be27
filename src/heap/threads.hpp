// Threads come and go; thread caches stay. One whose thread has ended is abandoned with its slabs,
// and the next thread reclaims it as it is. Until then what is free in it is there for all.
#pragma once

#include "limits.hpp"
#include "thread_cache.hpp"

namespace mallard::engine {

/// For the marks of all thread caches; drawn once.
extern std::uint64_t the_key;
/// For who may be the first to need it.
std::uint64_t key_of_process() noexcept;

/// This thread's thread cache, made or reclaimed if it has none yet; null: its end has begun, or
/// there is no memory for one.
[[gnu::cold]] thread_cache* own_cache() noexcept;

/// The thread cache shared by threads that can have none of their own, behind a lock. Null: there
/// is no memory.
thread_cache* take_fallback_cache() noexcept;
void give_fallback_cache(thread_cache& cache) noexcept;
const thread_cache& fallback_cache() noexcept;

/// Around all that a thread does with the slab side of its thread cache.
///
/// A visitor, who holds the lock of abandoned caches, says that the thread cache is wanted, makes
/// all threads pass a barrier, and goes on only if its thread is not at work. The thread says that
/// it is, and waits if the thread cache is wanted. So one of them sees the other, and the thread,
/// which comes here often, pays two stores and a load and no barrier. (The idea is that of biased
/// locks; see sync::thread_cached, which has the same.)
class busy_scope {
public:
    explicit busy_scope(thread_cache& cache) noexcept : front_(cache)
    {
        cache.busy.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst); // the barrier is the visitor's
        if (cache.wanted.load(std::memory_order_acquire) != 0) [[unlikely]]
            wait_for_visitor();
    }
    busy_scope(const busy_scope&) = delete;
    busy_scope& operator=(const busy_scope&) = delete;
    ~busy_scope() { front_.busy.store(0, std::memory_order_release); }

private:
    void wait_for_visitor() noexcept;

    thread_cache& front_;
};

/// After much was sent to a thread cache: if its thread does nothing, what was sent is spliced
/// for it, and goes back whole where slabs are free.
void visit_if_idle(thread_cache& cache) noexcept;

enum class visits {
    of_idle, ///< threads without a slow path since the last visit
    of_all,  ///< all threads that are not in a slow path right now
};
/// Returns the free blocks of other threads, including their lists: see visit.cpp. The caller may
/// be at work with its own thread cache.
void visit_threads(visits which) noexcept;
/// Visits idle threads, unless some thread has just done so.
void visit_threads_soon() noexcept;

/// The thread of a visited thread cache takes the thread cache into use again. The caller holds
/// `abandoned_lock`.
void resume_after_visit(thread_cache& cache) noexcept;

/// Protects abandoned thread caches, and the thread cache that each thread is shown. Lock order:
/// see fork.hpp.
extern constinit os::lock abandoned_lock;
/// The thread cache that the thread of `cache` is to use: `cache` or its decoy. The caller holds
/// `abandoned_lock`.
thread_cache* cache_to_show(thread_cache& cache) noexcept;

/// Calls `use(thread_cache)` with this thread's thread cache or the one of the late.
template <class F>
[[gnu::noinline]] auto with_cache(thread_cache* cache, F use) noexcept
{
    if (cache->is_decoy())
        cache = own_cache();
    if (cache != nullptr)
        return use(*cache);
    thread_cache* const late = take_fallback_cache();
    if (late == nullptr)
        return decltype(use(*cache)){};
    auto const result = use(*late);
    give_fallback_cache(*late);
    return result;
}

/// What is cached goes to the slabs, slabs without a block in use to where they came from.
void empty(thread_cache& cache) noexcept;

/// A slab with free blocks, of a thread cache that is abandoned; null: there is none.
slab* reclaim_slab(thread_cache& cache, class_offset offset, slab_queue& q) noexcept;

/// What other threads have sent there, and to the fallback cache, is spliced; what is free goes
/// to the slice heap.
void empty_abandoned() noexcept;

/// Before a request is refused: returns to the slice heap the free blocks of this thread, of idle
/// threads and of threads that have ended.
void flush_idle_threads() noexcept;

/// What `try_it` gives, if necessary after others have given back what they can.
template <class F>
[[gnu::always_inline]] inline void* insist(F try_it) noexcept
{
    void* block = within_limits(try_it);
    if (block == nullptr) [[unlikely]] {
        flush_idle_threads();
        block = try_it();
    }
    return block != nullptr ? block : os::out_of_memory();
}

/// Returns to the slice heap the free blocks of all threads that are not in a slow path right now.
void flush_all_threads() noexcept;

/// Of all thread caches there are, each linked by `next_of_all`.
thread_cache* all_caches() noexcept;

/// Each thread that has a thread cache sees from now on what stands before it (see sample.hpp), or
/// does no longer; so do those to come. False: no memory, and nothing has changed.
bool show_sampling_decoys(bool shown) noexcept;

// Around a fork: see fork.hpp. In the child the thread caches of missing threads have no owner.
void take_caches() noexcept;
void keep_caches() noexcept;
void open_caches() noexcept;
void reset_caches() noexcept;

} // namespace mallard::engine
