// The blocks of one size that one thread has at hand, and how those that other
// threads free come back.
#pragma once

#include <mallard/detail/base/event_count.hpp>
#include <mallard/detail/pool/free_bitmap.hpp>
#include <mallard/detail/threads/gated_magazine.hpp>

#include <atomic>

namespace mallard {

template <class Supply>
class cached_blocks;

/// In the header of a chunk, behind the bitmaps: `remote_frees`, on cache lines
/// apart from what the owner writes.
inline constexpr header_shape remote_room{1, 2 * cache_line_bytes};

/// Sets or clears the live bit of a slot, where several threads may; returns what it was.
inline bool exchange_live(pool_chunk* c, std::size_t slot, bool live) noexcept
{
    std::atomic_ref const bits(c->live_bits()[slot / pool_chunk::word_bits]);
    pool_chunk::word const bit = pool_chunk::bit(slot);
    pool_chunk::word const before = live ? bits.fetch_or(bit, std::memory_order_relaxed)
                                         : bits.fetch_and(~bit, std::memory_order_relaxed);
    return (before & bit) != 0;
}

/// What stands in the header of a chunk for threads that do not own it.
///
///     words     a bit for each slot that was freed elsewhere
///     summary   a bit for each word (modulo 64) that may have bits
///
/// A chunk is in the inbox of its owner from when the summary ceases to be 0
/// until the owner makes it 0, and then no second time: so one link is enough.
///   who frees:  words |= bits;   if summary lacks the bit: summary |= bit, and
///               whoever found it 0 posts the chunk
///   the owner:  next = link; summary = 0; then words = 0 and takes their bits
/// All of it in one order that all threads see (seq_cst). A bit that comes too
/// late for the owner finds its summary bit gone, and so posts the chunk anew.
/// tests/models/remote_return.pml has the proof.
template <class Supply>
struct remote_frees {
    using word = pool_chunk::word;

    cached_blocks<Supply>* owner; // as long as the chunk is the pool's
    pool_chunk* next_posted;
    std::atomic<word> summary;
    std::byte unused[cache_line_bytes - 3 * sizeof(void*)];

    static remote_frees& of(pool_chunk* c) noexcept
    {
        std::byte* const behind = c->behind(Supply::own_maps);
        return *reinterpret_cast<remote_frees*>(align_up(behind, cache_line_bytes));
    }

    /// In a new chunk, or one that is as new.
    static void begin(pool_chunk* c, cached_blocks<Supply>* owner) noexcept
    {
        auto* const r = ::new (&of(c)) remote_frees{owner, nullptr, 0, {}};
        for (std::size_t w = 0; w < c->words_for(c->count); ++w)
            ::new (&r->at(w)) std::atomic<word>(0);
        if constexpr (Supply::checks_on) // asked before anyone asks whether it is carved
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

/// A magazine over the chunks that it owns. Into the magazine comes every block
/// that its thread frees, whosever chunk it is from: only when half of it has to
/// leave does anyone look.
template <class Supply>
class cached_blocks {
    using remote = remote_frees<Supply>;
    using word = pool_chunk::word;

public:
    constexpr cached_blocks() noexcept = default;

    gated_magazine free;

    /// A block from all that is its own; null when there is nothing.
    void* take(const Supply& chunks) noexcept
    {
        if (!free.empty())
            return free.pop();
        return load([&](std::span<void*> room) { return take_own(chunks, room); });
    }

    /// Blocks of another cache, which the caller may touch, for this empty one.
    /// Gives one of them; null when that has none.
    void* take_from(cached_blocks& other, const Supply& chunks) noexcept
    {
        return load([&](std::span<void*> room) {
            std::size_t count = 0;
            while (count < room.size() && !other.free.empty())
                room[count++] = other.free.pop();
            return count != 0 ? count : other.take_own(chunks, room);
        });
    }

    /// From a full magazine the older half goes home first. Without an array the
    /// block itself does.
    void push(const Supply& supply, void* block) noexcept
    {
        if (free.full()) {
            std::size_t const older = (free.capacity() + 1) / 2;
            put_back(supply, free.blocks().first(older));
            free.drop_oldest(older);
            ++flushes;
        }
        if (free.full())
            put_back(supply, {&block, 1});
        else
            free.push(block);
    }

    /// Blocks of chunks of its own get their bits, others are freed remotely:
    /// neighbours with one write.
    void put_back(const Supply& supply, std::span<void* const> blocks) noexcept
    {
        pool_chunk* c = nullptr;
        std::size_t at = 0;
        word bits = 0;
        for (void* const block : blocks) {
            auto const p = supply.place_of(block);
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

    /// By a thread that does not own the chunk. It goes on to write to the header
    /// when the owner may already have found the bit: so a chunk is given back only
    /// while no thread is here, which a freeze or the lock makes sure of.
    static void free_remotely(pool_chunk* c, std::size_t at, word bits) noexcept
    {
        remote& r = remote::of(c);
        word const summary_bit = pool_chunk::bit(at);
        r.at(at).fetch_or(bits);
        if ((r.summary.load() & summary_bit) == 0 && r.summary.fetch_or(summary_bit) == 0)
            r.owner->post(c, r);
    }

    /// What other threads have freed gets its bits.
    void collect() noexcept
    {
        pool_chunk* c =
            inbox_.load(std::memory_order_relaxed) == nullptr ? nullptr : inbox_.exchange(nullptr);
        while (c != nullptr) {
            remote& r = remote::of(c);
            pool_chunk* const next = r.next_posted; // before another may post it again
            std::size_t const words = c->words_for(c->count);
            for (word s = r.summary.exchange(0); s != 0; s &= s - 1)
                for (auto w = static_cast<std::size_t>(std::countr_zero(s)); w < words;
                     w += pool_chunk::word_bits)
                    if (word const bits = r.at(w).exchange(0); bits != 0)
                        own.set_free(c, w, bits);
            c = next;
        }
    }

    /// A new chunk is its own.
    void add(pool_chunk* c) noexcept
    {
        remote::begin(c, this);
        own.add(c);
        owns_chunks = true;
    }

    /// Makes its lists anew after chunks have gone, or have been emptied.
    void list(const Supply& supply) noexcept
    {
        owns_chunks = own.rebuild(supply, [this](pool_chunk& c) {
            return remote::of(&c).owner == this;
        }) != 0;
    }

    /// Has no blocks, though chunks may still name it their owner.
    void clear() noexcept
    {
        free.clear();
        own = {};
        owns_chunks = false;
        inbox_.store(nullptr, std::memory_order_relaxed);
    }

    /// The array is the caller's.
    chunk forget_array() noexcept { return free.leave_array(); }

    std::size_t owns_chunks : 1 = false; // with blocks to give or without
    std::size_t refills : 63 = 0;        // ever; in one word, so that all fit two lines
    event_count flushes;
    free_bitmap<Supply> own;

private:
    /// Loads what `f` writes and gives the last: half of the array, so that a few
    /// frees after it do not overflow.
    template <class F>
    void* load(F f) noexcept
    {
        void* single[1];
        std::size_t const half = free.capacity() / 2;
        std::span<void*> const room = half != 0 ? std::span(free.array(), half) : std::span(single);
        std::size_t const count = f(room);
        if (count == 0)
            return nullptr;
        refills += 1;
        if (half != 0)
            free.load(room.first(count - 1));
        return room[count - 1];
    }

    std::size_t take_own(const Supply& chunks, std::span<void*> room) noexcept
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

    std::atomic<pool_chunk*> inbox_{nullptr}; // the only part that other threads write to
};

} // namespace mallard
