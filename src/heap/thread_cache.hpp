// A thread's cache of free blocks, and the fast path of malloc and free.
//
//   malloc   size -> class offset -> free list at that offset in this thread's cache
//                list has a block:  pop                       (this file)
//                list is empty:     refill                    (requests.cpp, refill.cpp)
//   free     address -> entry of its slice; entry ^ tag of the cache == class offset
//                own block:         push onto the free list   (this file)
//                list is full:      overflow                  (frees.cpp)
//                anything else:     free_elsewhere            (frees.cpp, requests.cpp)
//
// A slice is 16 KiB of address space. Its map entry contains the number of the cache that owns the
// slice, and the size class of its blocks (see slab.hpp).
//
// The fast path has no branches for special cases. In a special case the thread uses a trap cache,
// in which the fast path always fails. A thread without a cache uses `empty_thread_cache`,
// whose lists are empty and whose tag matches no map entry. A thread whose allocations are sampled
// uses a trap cache whose lists look empty to malloc and full to free (see sample.hpp).
#pragma once

#include "deferred_frees.hpp"
#include "reservation.hpp"

#include <cstring>

namespace mallard::engine {

struct span;

/// The slabs of one size class that a thread cache owns. A slab without free blocks is in no list.
struct slab_queue {
    slab* partial = nullptr; ///< slabs with free blocks, most recently used first
    slab* fresh = nullptr;   ///< slab with never-allocated blocks; may also be in `partial`

    void link(slab& s) noexcept
    {
        s.listed = true;
        s.previous = nullptr;
        s.next = partial;
        if (partial != nullptr)
            partial->previous = &s;
        partial = &s;
    }
    void unlink(slab& s) noexcept
    {
        s.listed = false;
        (s.previous != nullptr ? s.previous->next : partial) = s.next;
        if (s.next != nullptr)
            s.next->previous = s.previous;
    }
};

/// Freed blocks of one slab that another cache owns. The thread collects these blocks, and sends
/// them to the other cache as one message (see remote.hpp).
struct remote_batch {
    slab* to = nullptr;
    void* first = nullptr;
    void* last = nullptr;
    std::uint32_t count = 0;
    std::uint32_t most = 0; ///< number of blocks at which the batch is sent
};

/// The number of batches that a thread collects at the same time. If a thread frees blocks of many
/// sizes that belong to another thread, these blocks are typically in about 32 slabs.
inline constexpr std::size_t remote_batch_count = 32;

struct sampling_decoy;
struct cache_policy;
struct shown_caches;

/// The free blocks and the slabs of one thread. A heap is such a cache without a thread (see
/// heap.hpp).
///
/// Caches are never destroyed. A thread that exits abandons its cache, and a new thread reclaims an
/// abandoned cache if there is one, instead of creating one (see threads.hpp).
///
/// The table lists which threads may use which members. A visitor is a thread that scavenges the
/// free blocks of an idle thread (see visit.hpp).
///     lists, outbox, deferred    the thread; in a visit, the visitor
///     queues, slabs, messages    the thread, while a `busy_scope` exists; otherwise a visitor
///     inbox, waiting             every thread
///     an abandoned cache         the thread that holds `registry_lock`
struct alignas(128) thread_cache {
    entry tag = 0; ///< the number of this cache << owner_shift
    std::atomic<std::uint32_t> slow_paths{0};
    std::uint64_t key = 0;                ///< secret key of the process, for free blocks
    std::atomic<std::uint32_t> busy{0};   ///< 1 while the thread is in a slow path
    std::atomic<std::uint32_t> wanted{0}; ///< not 0 while and after another thread scavenges this
    std::uint32_t slow_paths_seen = 0;    ///< `slow_paths` when another thread last read it
    std::uint32_t in_doubt_index = 0;     ///< size class of the blocks at `in_doubt`
    thread_cache* next_abandoned = nullptr;
    std::uint64_t decayed_at = 0; ///< when idle lists were last shrunk, in milliseconds
    /// In a trap cache, the thread's real cache, or null if the thread has no cache. In any other
    /// cache, the cache itself.
    thread_cache* real = nullptr;
    void* messages = nullptr; ///< messages taken from the inbox and not yet read

    free_list lists[class_count] = {};
    slab_queue queues[span_class_first] = {};
    remote_batch outbox[remote_batch_count] = {};
    deferred_frees deferred = {};
    /// For classes up to `classed_bytes_max`, how often the list overflowed after it was last
    /// empty. For larger classes, the number of slices in the last span that overflowed the list.
    std::uint16_t overflows[class_count] = {};
    /// Bit i is set if list i was refilled in this decay interval. Only used for classes whose
    /// blocks all have one size.
    std::uint64_t refilled = 0;
    /// The bytes by which the list limits exceed their initial values: [0] for classes whose blocks
    /// all have one size, [1] for classes of larger blocks.
    std::size_t allowance[2] = {};
    const cache_policy* policy = nullptr; ///< null in a trap cache
    thread_cache* next_of_all = nullptr;
    shown_caches* shown_at = nullptr;  ///< address of the thread's `my_caches`
    sampling_decoy* sampled = nullptr; ///< the thread's trap cache while sampling is on
    /// While the thread watches for idle memory (see decay.hpp), malloc always uses the slow path.
    /// `watch_credit` is the number of malloc calls after which the thread stops watching.
    /// `credited_at` is the time in milliseconds when `watch_credit` was last raised.
    std::uint32_t watch_credit = 0;
    std::uint64_t credited_at = 0;
    /// The first block of a list that another thread removed in a visit (visit.hpp) while this
    /// thread may have been using the list. This thread later checks whether the list still
    /// contains the removed blocks, and puts them back if not.
    void* in_doubt = nullptr;

    /// Remote frees by other threads, as a stack of batches. The last block of each batch has the
    /// link to the next batch.
    alignas(128) std::atomic<void*> inbox{nullptr};
    std::atomic<std::size_t> waiting{0}; ///< approximate number of bytes in the inbox

    /// Returns whether this cache is a trap cache, whose lists never contain a block.
    bool is_decoy() const noexcept { return real != this; }

    free_list& list_at(class_offset offset) noexcept
    {
        return *reinterpret_cast<free_list*>(reinterpret_cast<std::byte*>(this) + offset);
    }
};
static_assert(offsetof(thread_cache, lists) == offsets_before_lists * class_offset_unit);

/// The functions that allocate slabs for a cache, and that return the slabs. The caches of threads
/// share one policy (threads.cpp), the caches of heaps share another (heap.cpp).
struct cache_policy {
    /// Allocates adjacent slices for a slab or a span of class `index`. If there is no memory, `in`
    /// is null in the result.
    span (*take_slices)(thread_cache& cache, std::size_t index, std::size_t slices) noexcept;
    /// Frees a slab or a span in which no block is used.
    void (*give_slab)(thread_cache& owner, slab& s) noexcept;
    /// Reclaims a slab with free blocks from a thread that has exited. Returns null if there is no
    /// such slab.
    slab* (*reclaim_slab)(thread_cache& cache, class_offset offset) noexcept;
    /// Allocates one of the never-allocated blocks of the slab `queue.fresh`.
    void* (*carve)(thread_cache& cache, class_offset offset, slab_queue& queue) noexcept;
    /// Adds `bytes`, which may be negative, to the sum of `thread_cache::allowance` over all
    /// caches. If the sum would be too large, returns false and does not change the sum.
    bool (*change_allowances)(std::ptrdiff_t bytes) noexcept;
    /// Called after a message with `bytes` bytes of blocks was pushed to the inbox of `to`.
    void (*after_message)(thread_cache& to, std::size_t bytes) noexcept;
};

extern constinit thread_cache empty_thread_cache; ///< used by threads that have no cache yet
/// Used by exiting threads, and by the first thread before its thread-local variables have their
/// initial values (see os/relocation.hpp).
extern constinit thread_cache exited_thread_cache;
extern constinit thread_cache
    visited_thread_cache; ///< used by a thread whose lists another thread has emptied (visit.hpp)
extern constinit thread_cache
    watching_thread_cache; ///< used by malloc while the thread watches for idle memory

/// The caches that malloc and free use in a thread, which are the thread's own cache or trap
/// caches. Other threads change these pointers when they scavenge the cache, and when sampling
/// starts or stops. malloc and free use the same cache, unless the thread watches for idle memory.
struct shown_caches {
    std::atomic<thread_cache*> to_malloc;
    std::atomic<thread_cache*> to_free;

    void show(thread_cache& c) noexcept
    {
        to_malloc = &c;
        to_free = &c;
    }
    /// Makes malloc use the cache `to` if malloc uses `from` now. Another thread may change
    /// `to_malloc` at the same time.
    void replace(thread_cache& from, thread_cache& to) noexcept
    {
        thread_cache* shown = to_malloc.load(std::memory_order_relaxed);
        if (shown == &from)
            to_malloc.compare_exchange_strong(shown, &to);
    }
};
extern constinit thread_local shown_caches my_caches;

/// Returns the cache that malloc uses in this thread.
inline thread_cache* shown_cache() noexcept
{
    // Uses acquire order, because another thread may have created the trap cache.
    return my_caches.to_malloc.load(std::memory_order_acquire);
}
/// Returns the cache that free uses in this thread.
inline thread_cache* shown_to_free() noexcept
{
    return my_caches.to_free.load(std::memory_order_acquire);
}

/// Returns an identifier of the calling thread. The C++ and C headers of heaps compare the same
/// value.
inline const void* this_thread() noexcept
{
    return __builtin_thread_pointer();
}

/// The initial lists of a cache, without blocks.
inline constexpr auto first_lists = [] {
    std::array<free_list, class_count> all{};
    for (std::size_t i = 0; i < class_count; ++i)
        all[i] = {.room = shapes[i].limit,
                  .limit = shapes[i].limit,
                  .unaligned_bits = shapes[i].unaligned_bits()};
    return all;
}();
inline void empty_lists(thread_cache& cache) noexcept
{
    std::memcpy(cache.lists, first_lists.data(), sizeof cache.lists);
}

// --- the slow paths --------------------------------------------------------------
//
// These functions are never inlined. The fast path calls them in tail position with the arguments
// in the registers where they already are.

// These functions are defined in requests.cpp.
[[gnu::noinline]] void* refill(std::size_t bytes, class_offset offset,
                               thread_cache* cache) noexcept;
[[gnu::noinline]] void* allocate_above(std::size_t bytes, thread_cache* cache) noexcept;
/// Allocates a block of more than `classed_bytes_max` and at most `block_bytes_max` bytes. Unless
/// `zero` is null, sets `*zero` to whether all bytes of the block are 0.
[[gnu::noinline]] void* allocate_span(std::size_t bytes, thread_cache* cache,
                                      bool* zero = nullptr) noexcept;
/// Frees an address that the other functions do not handle, namely null, a span, a large block, a
/// sampled block, a block of a heap, or a block outside the first reservation. Stops the process if
/// the address is not a block.
[[gnu::noinline]] void free_rare(void* block, thread_cache* cache) noexcept;

// These functions are defined in frees.cpp.
[[gnu::noinline]] void free_elsewhere(void* block, thread_cache* cache) noexcept;
[[gnu::noinline]] void overflow(void* block, thread_cache* cache, class_offset offset) noexcept;
/// Returns a block to its slab instead of pushing it onto a free list. The block must be in a slab,
/// or be a span of this thread.
[[gnu::noinline]] void free_past_list(void* block, thread_cache& cache) noexcept;
[[gnu::noinline]] void stop_at_freed_twice(void* block) noexcept;
[[gnu::noinline]] void stop_at_freed_inside(void* block) noexcept;

// --- the fast path -----------------------------------------------------------------

/// Pushes a block onto the free list of its class if the list is not full. Does not read the block,
/// since a read may miss the processor's cache. Stops the process if the address is less aligned
/// than the blocks of the class. Most addresses inside a block are less aligned.
[[gnu::always_inline]] inline void push(void* block, thread_cache* cache,
                                        class_offset offset) noexcept
{
    free_list& l = cache->list_at(offset);
    if ((static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(block)) & l.unaligned_bits) !=
        0) [[unlikely]]
        return stop_at_freed_inside(block);
    if (--l.room < 0) [[unlikely]]
        return overflow(block, cache, offset);
    std::atomic_signal_fence(std::memory_order_seq_cst); // change `room` before `head` (visit.hpp)
    void* const next = head_of(l).load(std::memory_order_relaxed);
    if (block == next) [[unlikely]]
        return stop_at_freed_twice(block);
    link(block, next, mark_for(block, cache->key));
    head_of(l).store(block, std::memory_order_release);
}

/// Pops a block from a free list, or refills the list if it is empty. `bytes` is the size that the
/// program requested. Returns null if there is no memory.
[[gnu::always_inline]] inline void* pop(thread_cache* cache, class_offset offset,
                                        std::size_t bytes = 0) noexcept
{
    free_list& l = cache->list_at(offset);
    l.room += 1;
    std::atomic_signal_fence(std::memory_order_seq_cst); // change `room` before `head` (visit.hpp)
    void* const block = head_of(l).load(std::memory_order_relaxed);
    if (block == nullptr) [[unlikely]]
        return refill(bytes, offset, cache);
    head_of(l).store(next_of(block, cache->key), std::memory_order_release);
    clear(block);
    return block;
}

[[gnu::always_inline]] inline void* allocate(std::size_t bytes) noexcept
{
    thread_cache* const cache = shown_cache();
    if (bytes > looked_up_max) [[unlikely]]
        return allocate_above(bytes, cache);
    return pop(cache, offsets_by_16[(bytes + 15) / 16], bytes);
}

[[gnu::always_inline]] inline void deallocate(void* block) noexcept
{
    thread_cache* const cache = shown_to_free();
    std::size_t const slice = reservations[0].slice_of(block);
    if (!reservations[0].has(slice)) [[unlikely]]
        return free_elsewhere(block, cache);
    class_offset const offset = reservations[0].entry_at(slice) ^ cache->tag;
    if (offset >= class_offset_end) [[unlikely]]
        return free_elsewhere(block, cache);
    push(block, cache, offset);
}

// --- inside slow paths ------------------------------------------------------------

/// A scope in which the thread is in a slow path and uses its slabs, queues and messages.
///
/// A visitor (a thread that scavenges this cache, see visit.hpp) holds `registry_lock`. The visitor
/// sets `wanted`, runs a barrier in all threads, and continues only if `busy` is 0. The thread of
/// the cache sets `busy` and then reads `wanted`. If `wanted` is set, the thread waits for the
/// visitor. So the visitor sees `busy`, or the thread sees `wanted`, or both. The thread itself
/// needs no barrier instruction, because the other thread's barrier runs in this thread, too. Such
/// barriers are expensive, but slow paths are frequent, and visits are rare. (Biased locks work in
/// the same way, and so does `sync::thread_cached`.)
class busy_scope {
public:
    explicit busy_scope(thread_cache& cache) noexcept : cache_(cache)
    {
        cache.busy.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst); // write `busy` before reading `wanted`
        if (cache.wanted.load(std::memory_order_acquire) != 0) [[unlikely]]
            wait_for_visitor();
    }
    busy_scope(const busy_scope&) = delete;
    busy_scope& operator=(const busy_scope&) = delete;
    ~busy_scope() { cache_.busy.store(0, std::memory_order_release); }

private:
    void wait_for_visitor() noexcept; // defined in visit.cpp

    thread_cache& cache_;
};

/// If a decay interval has passed, shrinks the idle lists of this cache. The first thread that
/// calls this function in an interval also returns idle memory of the slice heap to the system.
/// Defined in decay.cpp.
[[gnu::cold, gnu::noinline]] void decay_if_due(thread_cache& cache) noexcept;

/// Makes this thread watch for idle memory (see decay.hpp) if malloc uses `cache` in this thread.
inline void start_watch(thread_cache& cache) noexcept
{
    my_caches.replace(cache, watching_thread_cache);
}
/// Called by each malloc while the thread watches for idle memory. Returns idle memory if that is
/// due, or makes the thread stop watching. Defined in decay.cpp.
[[gnu::cold, gnu::noinline]] void watch(thread_cache& own) noexcept;
/// Lowers the number of calls of malloc that the thread may still make while it watches for idle
/// memory.
inline void spend_credit(thread_cache& own, std::uint32_t credit) noexcept
{
    own.watch_credit -= own.watch_credit < credit ? own.watch_credit : credit;
}

/// Counts a slow path. Every 64th slow path reads the clock.
inline void tick(thread_cache& cache) noexcept
{
    constexpr std::uint32_t ticks_per_clock_read = 64;
    std::uint32_t const ticks = cache.slow_paths.load(std::memory_order_relaxed) + 1;
    cache.slow_paths.store(ticks, std::memory_order_relaxed);
    if (ticks % ticks_per_clock_read == 0) [[unlikely]]
        decay_if_due(cache);
}

// The functions below are in refill.cpp and frees.cpp. They require that the thread is inside a
// `busy_scope`, or that no thread uses the cache.

/// Refills an empty free list of a cache that is not a trap cache, and allocates a block. Returns
/// null if there is no memory.
void* refill_in(thread_cache& cache, class_offset offset) noexcept;
/// Prepares for the allocation of a span of more than `classed_bytes_max` bytes. Returns cached
/// spans of other sizes to the slice heap, so that the process does not grow. If the program
/// repeatedly frees and allocates the same size, raises the limit of the class's free list by one
/// span.
[[gnu::cold]] void make_room_for_span(thread_cache& cache, std::size_t bytes) noexcept;
/// Returns blocks of a free list to their slabs until `keep` blocks are left.
void shrink(thread_cache& cache, std::size_t index, std::size_t keep) noexcept;
/// Halves the free lists that were not refilled in this decay interval.
[[gnu::cold]] void shrink_idle(thread_cache& cache) noexcept;
/// Returns all cached blocks to their slabs, and all unused slabs to the slice heap or to the
/// chunks of the heap.
[[gnu::cold]] void flush(thread_cache& cache) noexcept;
/// Sends the collected batches of remote frees, reads all messages from other threads, and returns
/// unused slabs.
[[gnu::cold]] void flush_slabs(thread_cache& cache) noexcept;
/// Returns the deferred blocks to their slabs, or sends them to the caches that own the slabs.
[[gnu::noinline]] void return_deferred_blocks(thread_cache& cache) noexcept;
/// Returns the deferred blocks. Then makes all free lists available that were hidden because of
/// deferred frees.
[[gnu::cold]] void return_all_deferred(thread_cache& cache) noexcept;

} // namespace mallard::engine
