// The thread caches of all threads. A thread cache outlives its thread: when the thread ends, the
// thread cache is abandoned with its slabs, and a new thread reclaims it unchanged. In the meantime
// every thread may take slabs with free blocks from it.
#pragma once

#include "limits.hpp"
#include "thread_cache.hpp"

namespace mallard::engine {

/// The random key of the marks of free blocks; 0 until the first thread cache is made.
extern std::uint64_t the_key;
/// Returns the key, after choosing it if no thread has yet.
std::uint64_t key_of_process() noexcept;

/// This thread's thread cache, made or reclaimed if the thread has none yet. Null: the thread is
/// exiting, or there is no memory.
[[gnu::cold]] thread_cache* own_cache() noexcept;

/// Locks and returns the thread cache that all threads without their own share. Null: there is no
/// memory.
thread_cache* take_fallback_cache() noexcept;
void give_fallback_cache(thread_cache& cache) noexcept;
const thread_cache& fallback_cache() noexcept;

/// Scope in which a thread uses the slab side of its thread cache. Waits for a visitor first.
///
/// This is a biased lock, as in sync::thread_cached. The thread stores `busy`, then reads `wanted`,
/// and waits if `wanted` is set. A visitor holds the lock of abandoned caches, stores `wanted`,
/// executes a barrier in all threads, then reads `busy`, and gives up if `busy` is set. So at least
/// one of the two sees the other. The thread, which comes here often, pays two stores and a load,
/// and no barrier.
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

/// Reads the inbox of a thread cache in place of its thread, if the thread has taken no slow path
/// since the last call. Slabs that become free return to the slice heap. Call this after sending
/// many blocks.
void visit_if_idle(thread_cache& cache) noexcept;

enum class visits {
    of_idle, ///< threads that took no slow path since the last visit
    of_all,  ///< all threads that are not in a slow path right now
};
/// Returns the free blocks of other threads to their slabs: see visit.cpp. The caller's own thread
/// cache may be busy.
void visit_threads(visits which) noexcept;
/// Visits idle threads, unless a thread did so in the last 250 ms.
void visit_threads_soon() noexcept;

/// Ends a visit, called by the visited thread itself before it uses its thread cache again. The
/// caller holds `abandoned_lock`.
void resume_after_visit(thread_cache& cache) noexcept;

/// Protects the list of abandoned thread caches, and each thread's `my_cache`. Lock order: see
/// fork.hpp.
extern constinit os::lock abandoned_lock;
/// The thread cache that the thread of `cache` shall use: `cache` itself, or its decoy while
/// sampling is on. The caller holds `abandoned_lock`.
thread_cache* cache_to_show(thread_cache& cache) noexcept;

/// Calls `use(thread_cache)` with this thread's thread cache, or with the fallback cache.
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

/// Returns cached blocks to their slabs, and slabs without a used block to the slice heap.
void empty(thread_cache& cache) noexcept;

/// Takes a slab with free blocks from an abandoned thread cache; null if there is none.
slab* reclaim_slab(thread_cache& cache, class_offset offset, slab_queue& q) noexcept;

/// Empties the abandoned thread caches and the fallback cache, and reads their inboxes.
void empty_abandoned() noexcept;

/// Returns to the slice heap what is free in this thread, in idle threads and in ended threads.
/// Called before an allocation fails.
void flush_idle_threads() noexcept;

/// Calls `try_it()`, and once more after `flush_idle_threads` if it returns null. Sets errno to
/// ENOMEM if that fails too.
template <class F>
[[gnu::always_inline]] inline void* retry_after_flush(F try_it) noexcept
{
    void* block = within_limits(try_it);
    if (block == nullptr) [[unlikely]] {
        flush_idle_threads();
        block = try_it();
    }
    return block != nullptr ? block : os::out_of_memory();
}

/// Returns to the slice heap what is free in all threads that are not in a slow path right now.
void flush_all_threads() noexcept;

/// The newest of all thread caches; `next_of_all` links the others.
thread_cache* all_caches() noexcept;

/// Reads a variable that another thread may be writing. The value may be out of date.
template <class T>
[[gnu::no_sanitize_thread, gnu::noinline]] T racy_read(const T& value) noexcept
{
    return *const_cast<const volatile T*>(&value);
}

/// Puts a sampling decoy before the thread cache of every thread, present and future, or removes
/// the decoys (see sample.hpp). False: no memory, and nothing has changed.
bool show_sampling_decoys(bool shown) noexcept;

// Called around a fork: see fork.hpp. In the child, the thread caches of other threads have no
// owner.
void take_caches() noexcept;
void keep_caches() noexcept;
void open_caches() noexcept;
void reset_caches() noexcept;

} // namespace mallard::engine
