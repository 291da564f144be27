// The free blocks of one size that one thread has cached, and the blocks in its chunks that other
// threads have freed.
#pragma once

#include <mallard/detail/base/atomic_ref.hpp>
#include <mallard/detail/base/event_count.hpp>
#include <mallard/detail/pool/free_bitmap.hpp>
#include <mallard/detail/pool/magazine.hpp>

#include <atomic>
#include <cstdint>

namespace mallard {

/// A word that one thread may read while another writes it. Loads and stores are relaxed, so they
/// compile to ordinary instructions.
template <class T>
class relaxed {
public:
    constexpr relaxed(T value) noexcept : value_(value) {}
    constexpr relaxed(relaxed&& other) noexcept : value_(static_cast<T>(other)) {}

    constexpr operator T() const noexcept
    {
        return std::is_constant_evaluated() ? value_ : __atomic_load_n(&value_, __ATOMIC_RELAXED);
    }
    constexpr relaxed& operator=(T value) noexcept
    {
        if (std::is_constant_evaluated())
            value_ = value;
        else
            __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
        return *this;
    }

private:
    T value_;
};

/// A magazine (an array of free blocks) that another thread can close while the owner thread uses
/// it. Each call of the owner compares `top` with a bound anyway. In a closed magazine, this
/// comparison fails.
///
/// The owner may call `try_pop` and `try_push` at any time between `thread_cache::announce` and
/// `leave`. All other functions are for a thread that may use the content of the cache (see
/// `thread_cache`).
///
/// A thread that closes the magazine writes both bounds, and then waits until the owner has called
/// `leave`. If the owner has read an old bound, it finishes its call before the closing thread
/// continues. If the owner reads a new bound, its call fails. The closing thread may write `top` at
/// that moment, which is safe, because the owner does not use the `top` that it has read.
class closable_magazine : public basic_magazine<relaxed<void**>> {
    using base = basic_magazine<relaxed<void**>>;
    using address = std::uintptr_t;

public:
    /// Pops a block. Returns null if the magazine is empty or closed.
    [[gnu::always_inline]] void* try_pop() noexcept
    {
        address const bottom = bottom_.load(std::memory_order_acquire);
        void** const at = top();
        if (reinterpret_cast<address>(at) <= bottom) [[unlikely]]
            return nullptr;
        set_top(at - 1);
        void* const block = at[-1];
        if (block == nullptr)
            __builtin_unreachable();
        return block;
    }

    /// Pushes a block. Returns false if the magazine is full or closed.
    [[gnu::always_inline]] bool try_push(void* block) noexcept
    {
        address const end = end_.load(std::memory_order_acquire);
        void** const at = top();
        if (reinterpret_cast<address>(at) >= end) [[unlikely]]
            return false;
        set_top(at + 1);
        *at = block;
        return true;
    }

    void close() noexcept
    {
        bottom_.store(~address{0}, std::memory_order_relaxed);
        end_.store(0, std::memory_order_relaxed);
    }
    void open() noexcept
    {
        bottom_.store(reinterpret_cast<address>(array()), std::memory_order_release);
        end_.store(reinterpret_cast<address>(array() + capacity()), std::memory_order_release);
    }

    /// Moves the blocks to a larger array (see `basic_magazine`). Requires an open magazine, which
    /// stays open.
    chunk move_to(chunk memory, std::size_t entries) noexcept
    {
        chunk const left = base::move_to(memory, entries);
        open();
        return left;
    }

    /// Removes the array and returns its memory. Afterwards the magazine is both empty and full,
    /// whether it is open or closed.
    chunk forget_array() noexcept
    {
        chunk const left = memory();
        base::operator=(base());
        open();
        return left;
    }

private:
    std::atomic<address> bottom_{0}; // a block can be popped if `top` is above this bound
    std::atomic<address> end_{0};    // a block can be pushed if `top` is below this bound
};

template <class Chunks>
class cached_blocks;

/// The space for `remote_frees` in the header of a chunk. It consists of one bitmap, a cache line
/// for the members, and up to a cache line of padding before them. The owner's hot path does not
/// write to this space.
inline constexpr header_shape remote_header{1, 2 * cache_line_bytes};

/// Sets or clears the live bit of a slot atomically, and returns the old value.
inline bool exchange_live(pool_chunk* c, std::size_t slot, bool live) noexcept
{
    atomic_ref const bits(c->live_bits()[slot / pool_chunk::word_bits]);
    pool_chunk::word const bit = pool_chunk::bit(slot);
    pool_chunk::word const before = live ? bits.fetch_or(bit, std::memory_order_relaxed)
                                         : bits.fetch_and(~bit, std::memory_order_relaxed);
    return (before & bit) != 0;
}

/// The part of a chunk's header that is written by threads that do not own the chunk.
///
///     words     a bit for each slot that another thread freed
///     summary   a bit for each word (modulo 64) that may have bits
///
/// The inbox of an owner is the list of its chunks in which other threads freed blocks. The thread
/// that makes a chunk's summary nonzero adds the chunk to the inbox. The owner removes the chunk
/// before it clears the summary. So a chunk is never in the inbox twice, and needs only one link.
///
///     a thread that frees:  words |= bits; if the summary lacks the bit of the word:
///                           summary |= bit, and if the summary was 0, adds the chunk to the inbox
///     the owner:            next = link; summary = 0; then it takes and clears the words
///
/// All threads see these operations in one order (seq_cst), so no bit is lost. Suppose that a
/// thread sets a bit after the owner has read that word. The owner cleared the summary before, so
/// this thread or another one sets the summary bit again, and adds the chunk to the inbox again.
/// tests/models/remote_return.pml verifies this argument.
template <class Chunks>
struct remote_frees {
    using word = pool_chunk::word;

    cached_blocks<Chunks>* owner; // constant as long as the pool has the chunk
    pool_chunk* next_posted;
    std::atomic<word> summary;
    std::byte unused[cache_line_bytes - 3 * sizeof(void*)];

    static remote_frees& of(pool_chunk* c) noexcept
    {
        std::byte* const behind = c->behind(Chunks::own_maps);
        return *reinterpret_cast<remote_frees*>(align_up(behind, cache_line_bytes));
    }

    /// Initialises the header of a chunk without blocks in use.
    static void begin(pool_chunk* c, cached_blocks<Chunks>* owner) noexcept
    {
        auto* const r = ::new (&of(c)) remote_frees{owner, nullptr, 0, {}};
        for (std::size_t w = 0; w < c->words_for(c->count); ++w)
            ::new (&r->at(w)) std::atomic<word>(0);
        if constexpr (Chunks::checks_on) // `classify` reads the live bits of uncarved slots too
            std::fill_n(c->live_bits(), c->words_for(c->count), word{0});
    }

    std::atomic<word>& at(std::size_t w) noexcept
    {
        return reinterpret_cast<std::atomic<word>*>(this + 1)[w];
    }

    bool has(std::size_t slot) noexcept
    {
        return (at(slot / pool_chunk::word_bits).load(std::memory_order_relaxed) &
                pool_chunk::bit(slot)) != 0;
    }
    std::size_t count(const pool_chunk& c) noexcept
    {
        std::size_t bits = 0;
        for (std::size_t w = 0; w < c.words_for(c.count); ++w)
            bits += static_cast<std::size_t>(std::popcount(at(w).load(std::memory_order_relaxed)));
        return bits;
    }
};

/// The free blocks of one size in one thread's cache. They are in a magazine, and in the bitmaps of
/// the chunks that the cache owns. Every block that the thread frees goes to the magazine, even a
/// block of another thread's chunk. The chunk of a block is looked up only when the magazine
/// overflows.
template <class Chunks>
class cached_blocks {
    using remote = remote_frees<Chunks>;
    using word = pool_chunk::word;

public:
    constexpr cached_blocks() noexcept = default;

    closable_magazine magazine;

    /// Removes and returns a block from the magazine, or a free block from a chunk that this cache
    /// owns. Returns null if there is no such block.
    void* take(const Chunks& chunks) noexcept
    {
        if (!magazine.empty())
            return magazine.pop();
        return load([&](std::span<void*> room) { return take_own(chunks, room); });
    }

    /// Moves blocks from `other` to this cache. Requires that this cache is empty, and that the
    /// caller may use the content of `other`. Returns one of these blocks, or null if `other` has
    /// no block.
    void* take_from(cached_blocks& other, const Chunks& chunks) noexcept
    {
        return load([&](std::span<void*> room) {
            std::size_t count = 0;
            while (count < room.size() && !other.magazine.empty())
                room[count++] = other.magazine.pop();
            return count != 0 ? count : other.take_own(chunks, room);
        });
    }

    /// Caches a freed block. A full magazine first returns the older half of its blocks to their
    /// chunks. If the magazine has no array, the block itself returns to its chunk.
    void push(const Chunks& chunks, void* block) noexcept
    {
        if (magazine.full()) {
            std::size_t const older = (magazine.capacity() + 1) / 2;
            put_back(chunks, magazine.blocks().first(older));
            magazine.drop_oldest(older);
            ++flushes;
        }
        if (magazine.full())
            put_back(chunks, {&block, 1});
        else
            magazine.push(block);
    }

    /// Returns blocks to their chunks. In a chunk that this cache owns, sets the free bit of the
    /// block. In any other chunk, calls `free_remotely`. Consecutive blocks whose bits are in the
    /// same word share one write.
    void put_back(const Chunks& chunks, std::span<void* const> blocks) noexcept
    {
        pool_chunk* c = nullptr;
        std::size_t at = 0;
        word bits = 0;
        for (void* const block : blocks) {
            auto const p = chunks.place_of(block);
            std::size_t const w = p.slot / pool_chunk::word_bits;
            if (p.c != c || w != at) {
                put_back_word(c, at, bits);
                c = p.c;
                at = w;
                bits = 0;
            }
            bits |= pool_chunk::bit(p.slot);
        }
        put_back_word(c, at, bits);
    }

    /// Frees blocks in a chunk that this thread does not own. The function may still write to the
    /// header of the chunk when the owner has already reused the freed blocks. So a chunk may be
    /// returned to the source only while no thread is in this function, namely under the lock and
    /// with all caches frozen.
    static void free_remotely(pool_chunk* c, std::size_t at, word bits) noexcept
    {
        remote& r = remote::of(c);
        word const summary_bit = pool_chunk::bit(at);
        r.at(at).fetch_or(bits);
        if ((r.summary.load() & summary_bit) == 0 && r.summary.fetch_or(summary_bit) == 0)
            r.owner->post(c, r);
    }

    /// Moves the bits of blocks that other threads freed to the free bitmap.
    void collect() noexcept
    {
        pool_chunk* c =
            inbox_.load(std::memory_order_relaxed) == nullptr ? nullptr : inbox_.exchange(nullptr);
        while (c != nullptr) {
            remote& r = remote::of(c);
            // Read the link before another thread can add the chunk to the inbox again.
            pool_chunk* const next = r.next_posted;
            std::size_t const words = c->words_for(c->count);
            for (word s = r.summary.exchange(0); s != 0; s &= s - 1)
                for (auto w = static_cast<std::size_t>(std::countr_zero(s)); w < words;
                     w += pool_chunk::word_bits)
                    if (word const bits = r.at(w).exchange(0); bits != 0)
                        own.set_free(c, w, bits);
            c = next;
        }
    }

    /// Makes this cache the owner of a new chunk.
    void add(pool_chunk* c) noexcept
    {
        remote::begin(c, this);
        own.add(c);
        owns_chunks = true;
    }

    /// Rebuilds the lists of the chunks that this cache owns, after chunks were returned or reset.
    void rebuild(const Chunks& chunks) noexcept
    {
        auto const is_own = [this](pool_chunk& c) { return remote::of(&c).owner == this; };
        owns_chunks = own.rebuild(chunks, is_own) != 0;
    }

    /// Discards all blocks. Chunks may still refer to this cache as their owner.
    void clear() noexcept
    {
        magazine.clear();
        own = {};
        owns_chunks = false;
        inbox_.store(nullptr, std::memory_order_relaxed);
    }

    chunk forget_array() noexcept { return magazine.forget_array(); }

    std::size_t owns_chunks : 1 = false; // true even if its chunks have no free blocks
    // The refills since the start, in 63 bits, so that the object fits two cache lines.
    std::size_t refills : 63 = 0;
    event_count flushes;
    free_bitmap<Chunks> own; // free blocks of the chunks that this cache owns

private:
    /// Calls `f`, which writes blocks to an array. Moves all of these blocks except the last to the
    /// magazine, and returns the last. Fills at most half of the array, so that a few frees
    /// afterwards do not overflow the array.
    template <class F>
    void* load(F f) noexcept
    {
        void* single[1];
        std::size_t const half = magazine.capacity() / 2;
        std::span<void*> const room =
            half != 0 ? std::span(magazine.array(), half) : std::span(single);
        std::size_t const count = f(room);
        if (count == 0)
            return nullptr;
        refills += 1;
        if (half != 0)
            magazine.load(room.first(count - 1));
        return room[count - 1];
    }

    std::size_t take_own(const Chunks& chunks, std::span<void*> room) noexcept
    {
        if (!own.has_recycled())
            collect();
        if (!own.replenish(chunks))
            return 0;
        return own.has_recycled() ? own.recycle(chunks, room) : own.carve(chunks, room);
    }

    void put_back_word(pool_chunk* c, std::size_t at, word bits) noexcept
    {
        if (bits == 0)
            return;
        if (remote::of(c).owner == this)
            own.set_free(c, at, bits);
        else
            free_remotely(c, at, bits);
    }

    void post(pool_chunk* c, remote& r) noexcept
    {
        pool_chunk* head = inbox_.load(std::memory_order_relaxed);
        do
            r.next_posted = head;
        while (!inbox_.compare_exchange_weak(head, c));
    }

    std::atomic<pool_chunk*> inbox_{nullptr}; // the only member that other threads write
};

} // namespace mallard
