// One thread's share of the engine, and the path that almost every call takes.
//
//   malloc: size -> class offset -> the list there in this thread's cache --hit--> block
//                                            | empty: refill (thread_cache.cpp)
//   free:   address -> entry of its slice -> "mine": onto the list there
//                                            | full, of another, of no list: elsewhere
//
// The absent cases are empty things: a thread without a thread cache has `empty_thread_cache`,
// whose lists are empty and whose number no entry carries; a thread that is sampled has before its
// thread cache another (see sample.hpp), whose lists are empty and full.
#pragma once

#include "reservation.hpp"

#include <cstring>

namespace mallard::engine {

/// What stands in a free block: the next one, and the same under the block's mark, which is
/// its address and the process's key. Both or none: a write into a free block chooses no
/// address, and a block that was handed out again is not in a list any more, since one word
/// of it is cleared then. (Signed links: the idea of snmalloc and of glibc's safe linking.)
///
/// So a block that is freed twice is found when it is handed out twice; at once, where the
/// block is looked at anyway or is the one that was freed last. To look at each would make
/// each free wait for its line (decision 18).
struct free_block {
    std::uint64_t guarded;
    void* next;
};

/// Blocks that this thread has at hand, newest first.
///
/// Each operation changes `room` before it reads `head`. So a visitor can tell that no operation
/// is under way: in that case `room` plus the number of blocks is `limit` (see visit.cpp).
struct free_list {
    void* head = nullptr;
    std::int32_t room = 0;            ///< limit - blocks in the list; less `hidden_by` if hidden
    std::uint16_t limit = 0;          ///< most blocks
    std::uint16_t unaligned_bits = 0; ///< bits that no block's address has; see class_shape

    static constexpr std::int32_t hidden_by = std::int32_t{1} << 30;

    /// The head of a hidden list is in `deferred_frees`; frees into that list are deferred. Another
    /// thread may call this too: -1 is the room of a full list, not hidden, during a free.
    static constexpr bool is_hidden(std::int32_t room) noexcept { return room < -1; }
    bool is_hidden() const noexcept { return is_hidden(room); }
};
static_assert(sizeof(free_list) == class_offset_unit);

/// The slabs of one class that belong to a thread cache. Those without a free block are nowhere.
struct slab_queue {
    slab* partial = nullptr; ///< with free blocks, those used last first
    slab* fresh = nullptr;   ///< being carved; perhaps among the partial ones too
};

/// Blocks of one slab of another thread, on their way there.
struct remote_batch {
    slab* to = nullptr;
    void* first = nullptr;
    void* last = nullptr;
    std::uint32_t count = 0;
    std::uint32_t most = 0; ///< then it is sent
};

/// Where blocks of many sizes go to another thread, they are of as many slabs.
inline constexpr std::size_t remote_batch_count = 32;

struct sampling_decoy;

/// Blocks of the first so many classes are put off: larger ones are dear.
inline constexpr std::size_t deferred_class_count = block_class::of(1024) + 1;

/// Freed blocks that no list has room for, until there are `most`: their lines are on the way
/// to the cache meanwhile. Who frees a million blocks at random waits for memory, and so for
/// several at once. They count as used in their slabs.
///
/// What is wrong with one, as that it was free already, is seen when it is brought back. If
/// it was, it may be in the list of its class: so that list is hidden until then, and nobody
/// gets it from there. A hidden list gives up as many as are brought back: what is in it is older
/// than they are, and would keep slabs from coming back whole.
struct deferred_frees {
    static constexpr std::uint32_t most = 16;
    static constexpr std::uint32_t at_once = 64; ///< in a row, before one is deferred

    std::uint32_t count = 0;
    std::uint32_t in_a_row = 0; ///< frees past the lists, since a refill
    void* blocks[most] = {};
    void* hidden[deferred_class_count] = {}; ///< heads of the lists of those that are own
};

/// Type-stable: made when no abandoned one is left, never unmade.
///
/// Only its thread touches its lists and its outbox. Its slab side, which is its slabs and
/// their queues and the messages it has taken, its thread touches while it is at work, and a
/// visitor when it is not (see threads.hpp). Anybody pushes to the inbox. An abandoned one, whose
/// thread has ended, belongs to whoever holds the lock of abandoned caches.
struct alignas(128) thread_cache {
    entry tag = 0; ///< own number << owner_shift
    std::atomic<std::uint32_t> slow_paths{0};
    std::uint64_t key = 0;                ///< of the process, for marks
    std::atomic<std::uint32_t> busy{0};   ///< its thread is at work
    std::atomic<std::uint32_t> wanted{0}; ///< a visitor has come
    std::uint32_t slow_paths_seen = 0;    ///< by who came last
    std::uint32_t in_doubt_index = 0;     ///< of the list whose head is `in_doubt`
    thread_cache* next_abandoned = nullptr;
    std::uint64_t decayed_at = 0; ///< when its lists were checked last
    thread_cache* real = nullptr; ///< this thread cache; in a decoy thread cache, the thread cache
                                  ///< behind it; or null
    void* messages = nullptr;     ///< taken from the inbox, not yet read

    free_list lists[class_count] = {};
    slab_queue queues[span_class_first] = {};
    remote_batch outbox[remote_batch_count] = {};
    deferred_frees deferred = {};
    /// Overflows of each list since it was last empty. Above `classed_bytes_max`: slices of the
    /// block in the list.
    std::uint16_t overflows[class_count] = {};
    std::uint64_t refilled =
        0; ///< bit i: list i (of classed blocks) was refilled in this decay interval
    /// Bytes that the lists may keep above their first limits: [0] classed blocks, [1] larger ones.
    std::size_t allowance[2] = {};
    thread_cache* next_of_all = nullptr;
    std::atomic<thread_cache*>* shown_at = nullptr; ///< the `my_cache` of its thread
    sampling_decoy* sampled = nullptr;              ///< what stands before it when it is sampled
    /// Head of a list that a visitor has taken while an operation may have been under way. The
    /// thread itself decides later whether the list is lost or still its own.
    void* in_doubt = nullptr;

    /// Batches that others have sent: each by its last block, newest first.
    alignas(128) std::atomic<void*> inbox{nullptr};
    std::atomic<std::size_t> waiting{0}; ///< bytes in it, about

    /// Its lists are never used: `real` has those, if there is one.
    bool is_decoy() const noexcept { return real != this; }

    free_list& list_at(class_offset offset) noexcept
    {
        return *reinterpret_cast<free_list*>(reinterpret_cast<std::byte*>(this) + offset);
    }
};
static_assert(offsetof(thread_cache, lists) == offsets_before_lists * class_offset_unit);

extern constinit thread_cache empty_thread_cache;  ///< of threads that have none yet
extern constinit thread_cache exited_thread_cache; ///< of those whose end has begun
extern constinit thread_cache
    visited_thread_cache; ///< of visited threads, until their next slow path
/// Sets the tags of these thread caches, before the map has entries. (As initial values the tags
/// would take 4 KiB of the library's file for each thread cache.)
void tag_decoy_caches() noexcept;
/// Written by its thread; and, when sampling begins or ends, by the one who says so.
extern constinit thread_local std::atomic<thread_cache*> my_cache;

inline thread_cache* shown_cache() noexcept
{
    return my_cache.load(std::memory_order_acquire); // of what another has made, perhaps
}

inline std::atomic_ref<void*> head_of(free_list& l) noexcept
{
    return std::atomic_ref(l.head);
}

/// Those of a thread cache that has nothing: copied whole, for heaps that come and go.
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

/// Two words of a block that is free; a caller's block has anything there.
inline free_block& as_free(void* block) noexcept
{
    return *static_cast<free_block*>(block);
}
inline std::uint64_t mark_for(const void* block, std::uint64_t key) noexcept
{
    return reinterpret_cast<std::uintptr_t>(block) ^ key;
}
inline void link(void* block, void* next, std::uint64_t mark) noexcept
{
    as_free(block) = {reinterpret_cast<std::uintptr_t>(next) ^ mark, next};
}
inline bool is_free(const void* block, std::uint64_t mark) noexcept
{
    auto const& b = *static_cast<const free_block*>(block);
    return (b.guarded ^ mark) == reinterpret_cast<std::uintptr_t>(b.next);
}
/// A block that is handed out, or was never given.
inline void clear(void* block) noexcept
{
    as_free(block).guarded = 0;
}

[[noreturn, gnu::noinline]] void stop_at_damaged_list(const void* block) noexcept;

/// Of a free block. Stops the process where that is none.
[[gnu::always_inline]] inline void* next_of(const void* block, std::uint64_t key) noexcept
{
    if (!is_free(block, mark_for(block, key))) [[unlikely]]
        stop_at_damaged_list(block);
    return static_cast<const free_block*>(block)->next;
}

// The slow paths, in thread_cache.cpp and deferred_frees.cpp; never inlined, in tail position,
// arguments where they arrived.
[[gnu::noinline]] void* refill(std::size_t bytes, class_offset offset,
                               thread_cache* cache) noexcept;
[[gnu::noinline]] void* allocate_above(std::size_t bytes, thread_cache* cache) noexcept;
/// Allocates above `classed_bytes_max`, up to `block_bytes_max`. Sets `*zero`, if given, to whether
/// the block reads as zero.
[[gnu::noinline]] void* allocate_span(std::size_t bytes, thread_cache* cache,
                                      bool* zero = nullptr) noexcept;
[[gnu::noinline]] void free_elsewhere(void* block, thread_cache* cache) noexcept;
[[gnu::noinline]] void overflow(void* block, thread_cache* cache, class_offset offset) noexcept;
[[gnu::noinline]] void stop_at_freed_twice(void* block) noexcept;
[[gnu::noinline]] void stop_at_freed_inside(void* block) noexcept;

/// Puts a block on its list if there is room. The block is not read, since that may miss the cache.
/// Most addresses inside a block are less aligned than the blocks of the class: such an address
/// stops the process.
[[gnu::always_inline]] inline void push(void* block, thread_cache* cache,
                                        class_offset offset) noexcept
{
    free_list& l = cache->list_at(offset);
    if ((static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(block)) & l.unaligned_bits) !=
        0) [[unlikely]]
        return stop_at_freed_inside(block);
    if (--l.room < 0) [[unlikely]]
        return overflow(block, cache, offset);
    std::atomic_signal_fence(std::memory_order_seq_cst); // the visitor has the barrier
    void* const next = head_of(l).load(std::memory_order_relaxed);
    if (block == next) [[unlikely]]
        return stop_at_freed_twice(block);
    link(block, next, mark_for(block, cache->key));
    head_of(l).store(block, std::memory_order_release);
}

/// `bytes`: how many were asked for. Null: refused.
[[gnu::always_inline]] inline void* pop(thread_cache* cache, class_offset offset,
                                        std::size_t bytes = 0) noexcept
{
    free_list& l = cache->list_at(offset);
    l.room += 1;
    std::atomic_signal_fence(std::memory_order_seq_cst); // the visitor has the barrier
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
    thread_cache* const cache = shown_cache();
    std::size_t const g = reservations[0].slice_of(block);
    if (!reservations[0].has(g)) [[unlikely]]
        return free_elsewhere(block, cache);
    class_offset const offset = reservations[0].entry_at(g) ^ cache->tag;
    if (offset >= class_offset_end) [[unlikely]]
        return free_elsewhere(block, cache);
    push(block, cache, offset);
}

/// To its slab, into a batch for that of another thread cache, or, a span, to the slice heap.
[[gnu::noinline]] void free_past_list(void* block, thread_cache& cache) noexcept;

/// `back` is full.
[[gnu::noinline]] void return_deferred(thread_cache& cache) noexcept;

/// A block of a slab, whosever, of a class that may be deferred.
[[gnu::always_inline]] inline void defer(thread_cache& cache, void* block) noexcept
{
    __builtin_prefetch(block, 1);
    cache.deferred.blocks[cache.deferred.count++] = block;
    if (cache.deferred.count == deferred_frees::most) [[unlikely]]
        return_deferred(cache);
}

// --- the slab side, for those who hold the thread cache --------------------------------

/// As `refill`, of a thread cache that is a real one.
void* refill_in(thread_cache& cache, class_offset offset) noexcept;
/// Takes a span for a block of `bytes`, without the list; `zero`: whether the span reads as zero.
void* span_for(thread_cache& cache, std::size_t bytes, bool& zero) noexcept;
/// What was deferred goes where it belongs: to its slab, or on its way to another thread cache's.
void return_deferred_blocks(thread_cache& cache) noexcept;
/// After that the list that they hid is shown again, if it was hidden.
void unhide_list(thread_cache& cache, std::size_t index) noexcept;
/// Both, and all lists.
void return_all_deferred(thread_cache& cache) noexcept;
/// A block to its slab; a span to the slice heap.
void return_block(thread_cache& cache, void* block) noexcept;
/// After blocks of a slab came back: it is where it is looked for, or given back whole.
void settle(thread_cache& cache, slab& s) noexcept;
void link_slab(slab_queue& q, slab& s) noexcept;
void unlink_slab(slab_queue& q, slab& s) noexcept;
void give_slab(slab& s) noexcept;
/// Bytes that the lists of all threads, without heaps, may keep above their first limits; and
/// `allowances`, the bytes granted so far.
inline constexpr std::size_t allowances_max = std::size_t{64} << 20;
extern constinit std::atomic<std::size_t> allowances;
/// Accounts for a list whose limit grows by `blocks`, or shrinks if `blocks` is negative.
void change_allowance(thread_cache& cache, const class_shape& shape, int blocks) noexcept;
/// Leaves `keep` blocks in a list.
void shrink(thread_cache& cache, std::size_t index, std::size_t keep) noexcept;
/// Halves the lists that were not wanted in this decay interval.
void shrink_idle(thread_cache& cache) noexcept;

} // namespace mallard::engine
