// The core of a `sync::thread_cached` pool or multipool. It has chunks that all threads share, and
// a cache of free blocks for each thread.
#pragma once

#include <mallard/detail/pool/pool_core.hpp>
#include <mallard/detail/threads/cached_blocks.hpp>
#include <mallard/detail/threads/thread_caches.hpp>

#include <algorithm>
#include <array>

namespace mallard {

template <pool_options Options>
using shared_chunk_list = chunk_list<Options.with(reuse::ordered), remote_header>;

/// The cache of one thread, with free blocks of `N` sizes. Each size occupies two cache lines of 64
/// bytes. No other thread writes to the line that contains the magazine.
template <pool_options Options, std::size_t N>
struct alignas(false_sharing_bytes) pool_thread_cache : thread_cache {
    std::array<cached_blocks<shared_chunk_list<Options>>, N> of;
    static_assert(sizeof of[0] == 2 * cache_line_bytes);
    chunk taken; // the memory of this cache; null if the cache is built into the pool

    void set_open(bool open) noexcept
    {
        for (auto& blocks : of)
            open ? blocks.magazine.open() : blocks.magazine.close();
    }
};

/// Blocks of `N` sizes. A thread allocates from its own cache and frees to its own cache, without a
/// lock or an atomic read-modify-write. Each chunk is owned by one cache, until the chunk is
/// returned to the source.
///
/// When its cache is empty, a thread looks for blocks in this order: in its chunks, where other
/// threads may have freed blocks; in abandoned caches; in the source; in the caches of all threads,
/// which are frozen during the search. So an allocation fails only if no block is free in any cache
/// or chunk. If there is no memory for the cache of a thread, the thread allocates and frees under
/// the lock, which is slow.
template <pool_options Options, std::size_t N>
class cached_core : public thread_caches<pool_thread_cache<Options, N>> {
    using cache = pool_thread_cache<Options, N>;
    using chunks = shared_chunk_list<Options>;
    using blocks = cached_blocks<chunks>;
    using remote = remote_frees<chunks>;
    using base = thread_caches<cache>;
    using base::built_in;
    using base::first;
    using base::growing;
    using base::lock;
    using base::mine;
    using base::next;
    static constexpr bool checks_on = chunks::checks_on;
    // An array that is returned must have room for a list link (see `later_source`).
    static constexpr std::size_t entries_min = 4;
    static constexpr std::size_t entries_first = 64;
    static constexpr std::size_t entries_max = 1024;

public:
    using layout_type = chunk_layout<Options.with(reuse::ordered), remote_header>;

    template <class Rule>
    constexpr cached_core(const std::array<slot_shape, N>& shapes, Rule rule) noexcept
        : cached_core(shapes, rule, std::make_index_sequence<N>())
    {
    }

    template <class Rule>
    constexpr cached_core(slot_shape shape, Rule rule) noexcept
        requires(N == 1)
        : cached_core(std::array{shape}, rule)
    {
    }

    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        return layout_type::bytes_for(shape, count);
    }

    static constexpr layout least_chunk(slot_shape shape) noexcept
    {
        return layout_type(shape, Options.grow.limit).least_chunk();
    }
    /// Returns how many bytes a source must have for one block of this shape.
    static constexpr std::size_t bytes_for_one(slot_shape shape) noexcept
    {
        return bytes_at_any_address(least_chunk(shape));
    }

    constexpr void set_owner(void* owner) noexcept
    {
        for (chunks& c : chunks_)
            c.set_owner(owner);
    }

    constexpr slot_shape shape(std::size_t i = 0) const noexcept { return chunks_[i].shape(); }

    template <bool Throws, class Source>
    [[gnu::always_inline]] void* allocate(Source& source, std::size_t i = 0) noexcept(!Throws)
    {
        if (auto* const c = static_cast<cache*>(mine()); c != nullptr) [[likely]] {
            c->announce();
            if (void* const block = c->of[i].magazine.try_pop(); block != nullptr) [[likely]] {
                mark_allocated(block, i);
                c->leave();
                return block;
            }
        }
        return refill<Throws>(source, i);
    }

    template <class Source>
    [[gnu::always_inline]] void deallocate(Source& source, void* block, std::size_t i = 0) noexcept
    {
        mark_freed(block, i);
        if (auto* const c = static_cast<cache*>(mine()); c != nullptr) [[likely]] {
            c->announce();
            if (c->of[i].magazine.try_push(block)) [[likely]]
                return c->leave();
        }
        overflow(source, block, i);
    }

    /// Fills `out` with blocks. On failure, allocates nothing.
    template <bool Throws, class Source>
    bool allocate_batch(Source& source, std::span<void*> out) noexcept(!Throws)
    {
        return allocate_all<Throws>(*this, source, out);
    }
    template <class Source>
    void deallocate_batch(Source& source, std::span<void* const> some) noexcept
    {
        for (void* const block : some)
            deallocate(source, block);
    }

    bool owns(const void* p) const noexcept
    {
        std::lock_guard const no_new_chunks(lock);
        return std::any_of(chunks_.begin(), chunks_.end(),
                           [p](auto& c) { return c.find(p) != nullptr; });
    }

    /// Returns whether `p` points into a chunk of size class `i`.
    bool owns(const void* p, std::size_t i) const noexcept
    {
        std::lock_guard const no_new_chunks(lock);
        return chunks_[i].find(p) != nullptr;
    }

    validity classify(const void* p) const noexcept
    {
        std::lock_guard const no_new_chunks(lock);
        for (std::size_t i = 0; i < N; ++i)
            if (pool_chunk* const c = chunks_[i].find(p))
                return classify(i, c, p);
        return validity::miss;
    }

    /// Calls `f` for each block in use. Holds the lock only at the beginning, so that `f` may free
    /// blocks.
    template <class F>
    void for_each(F& f)
    {
        {
            std::lock_guard const alone(lock);
            freeze_guard const frozen(*this);
            flush_caches();
        }
        for (chunks const& all : chunks_)
            all.for_each([&](pool_chunk& c) {
                auto const& bitmap = remote::of(&c).owner->own;
                c.for_each_used([&](std::size_t slot) {
                    void* const block = all.slot_address(&c, slot);
                    if (!bitmap.fresh().has(block))
                        f(block);
                });
            });
    }

    void reset() noexcept
    {
        std::lock_guard const alone(lock);
        freeze_guard const frozen(*this);
        for_each_size([](std::size_t, blocks& b) { b.clear(); });
        for (chunks& all : chunks_)
            all.for_each([&all](pool_chunk& c) {
                all.reset_slots(c);
                remote::begin(&c, remote::of(&c).owner);
            });
        rebuild();
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        this->detach_all();
        for (chunks& all : chunks_)
            all.release(source);
        for_each_size([&](std::size_t, blocks& b) { give_if_any(source, b.forget_array()); });
        this->release_all(source);
        restart();
    }

    /// Discards all memory without returning it. Called when the source frees all of its memory in
    /// one call.
    void forget() noexcept
    {
        this->detach_all();
        for (chunks& all : chunks_)
            all.forget();
        this->forget_all();
        for (blocks& b : built_in().of)
            b.forget_array();
        restart();
    }

    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        std::lock_guard const no_growth(growing);
        later_source<Source> later(source); // calls the source after the locks below are released
        std::lock_guard const alone(lock);
        freeze_guard const frozen(*this);
        flush_caches();
        for_each_size([&](std::size_t i, blocks& b) {
            give_if_any(later, uncount(b.forget_array()));
            b.own.clear(chunks_[i]);
        });
        for (chunks& all : chunks_)
            all.give_idle(later, keep, [](const pool_chunk& c) { return c.is_idle(); });
        rebuild();
        this->release_abandoned(later, [](const cache& c) {
            return std::all_of(c.of.begin(), c.of.end(), [](auto& b) { return !b.owns_chunks; });
        });
    }

    void add_to(statistics& s) const noexcept
    {
        std::lock_guard const alone(lock);
        freeze_guard const frozen(*this);
        for (chunks const& all : chunks_) {
            std::size_t const stride = all.shape().bytes;
            all.for_each([&](pool_chunk& c) {
                std::size_t const live =
                    c.carved_blocks() - c.free_blocks() - remote::of(&c).count(c);
                s.blocks_live += live;
                s.bytes_live += live * stride;
                s.bytes_idle += (c.capacity() - live) * stride;
                s.chunks += 1;
            });
            all.add_to(s);
        }
        for_each_size([&](std::size_t i, const blocks& b) {
            std::size_t const stride = shape(i).bytes;
            std::size_t const idle = b.magazine.blocks().size() + b.own.fresh().bytes() / stride;
            s.blocks_live -= idle;
            s.bytes_live -= idle * stride;
            s.bytes_idle += idle * stride;
            s.refills += b.refills;
            s.flushes += b.flushes;
        });
        s.bytes_taken += this->bytes() + arrays_bytes_;
    }

private:
    template <class Rule, std::size_t... Index>
    constexpr cached_core(const std::array<slot_shape, N>& shapes, Rule rule,
                          std::index_sequence<Index...>) noexcept
        : chunks_{chunks(shapes[Index], rule)...}
    {
    }

    // --- Slow paths. A thread never waits for a lock while it is inside its cache, because a
    // thread that freezes the caches holds the lock, and waits until all other threads have left
    // their caches. The two threads would deadlock.

    /// Runs the slow path of `allocate`, when the thread's cache has no block, does not exist, or
    /// is frozen.
    template <bool Throws, class Source>
    [[gnu::noinline]] void* refill(Source& source, std::size_t i) noexcept(!Throws)
    {
        for (;;) {
            cache* const c = this->find_or_make(source);
            if (c == nullptr)
                return grow<Throws>(source, i, nullptr);
            void* block = nullptr;
            bool const entered = c->enter();
            if (entered)
                block = c->of[i].take(chunks_[i]);
            if (block != nullptr)
                mark_allocated(block, i);
            c->leave();
            if (block != nullptr)
                return block;
            if (entered)
                return grow<Throws>(source, i, c);
            this->wait_for_thaw();
        }
    }

    /// Runs the slow path of `deallocate`, when the magazine is full, or the thread has no cache,
    /// or the cache is frozen. A free never waits for a thread that grows the pool.
    template <class Source>
    [[gnu::noinline]] void overflow(Source& source, void* block, std::size_t i) noexcept
    {
        for (bool may_enlarge = true;;) {
            cache* const c = this->try_find_or_make(source);
            if (c == nullptr)
                return free_without_cache(block, i);
            blocks& b = c->of[i];
            bool const entered = c->enter();
            bool const enlarges = entered && may_enlarge && is_too_small(b.magazine, i);
            if (entered && !enlarges)
                b.push(chunks_[i], block);
            c->leave();
            if (enlarges)
                try_enlarge(source, b.magazine, i);
            else if (entered)
                return;
            else
                this->wait_for_thaw();
            may_enlarge = may_enlarge && !enlarges;
        }
    }

    /// Finds a block outside the cache `c` of this thread. Looks in abandoned caches, then requests
    /// a chunk from the source, and then looks in the caches of all threads. Returns null if there
    /// is no block. Only one thread at a time runs this function. The function first looks into `c`
    /// again, because while this thread waited, other threads may have freed blocks in its chunks.
    template <bool Throws, class Source>
    void* grow(Source& source, std::size_t i, cache* c) noexcept(!Throws)
    {
        std::lock_guard const alone(growing);
        std::unique_lock held(lock);
        unlocked_source<Source> from(source, held);
        blocks without_cache;
        blocks& to = c != nullptr ? c->of[i] : without_cache;
        if (c != nullptr && !to.magazine.has_memory())
            enlarge(from, to.magazine, i);
        void* block = to.take(chunks_[i]);
        if (block == nullptr)
            block = c != nullptr ? take_from_caches(i, to, true) : take_from_all(i, to);
        if (block == nullptr)
            if (pool_chunk* const fresh = chunks_[i].template add_chunk<false>(from))
                block = take_new(i, fresh, c, to);
        if (block == nullptr)
            block = take_from_all(i, to);
        if constexpr (Throws) // requests again, so that the source throws its own exception
            if (block == nullptr)
                block = take_new(i, chunks_[i].template add_chunk<true>(from), c, to);
        if (block != nullptr)
            mark_allocated(block, i);
        return block;
    }

    /// Allocates a block from any cache, even from this thread's cache, because a block may have
    /// been freed while the source was called.
    void* take_from_all(std::size_t i, blocks& to) noexcept
    {
        freeze_guard const frozen(*this);
        void* const block = to.take(chunks_[i]);
        return block != nullptr ? block : take_from_caches(i, to, false);
    }

    void* take_from_caches(std::size_t i, blocks& to, bool only_abandoned) noexcept
    {
        void* block = nullptr;
        for (cache* c = first(); c != nullptr && block == nullptr; c = next(c))
            if (&c->of[i] != &to && (!only_abandoned || c->is_abandoned()))
                block = to.take_from(c->of[i], chunks_[i]);
        return block;
    }

    /// Allocates a block from a new chunk. The cache `c` becomes the owner of the chunk. If `c` is
    /// null, the built-in cache becomes the owner.
    void* take_new(std::size_t i, pool_chunk* fresh, cache* c, blocks& to) noexcept
    {
        if (c != nullptr) {
            to.add(fresh);
            return to.take(chunks_[i]);
        }
        freeze_guard const frozen(*this);
        built_in().of[i].add(fresh);
        return to.take_from(built_in().of[i], chunks_[i]);
    }

    void free_without_cache(void* block, std::size_t i) noexcept
    {
        std::lock_guard const no_trim(lock);
        auto const p = chunks_[i].place_of(block);
        blocks::free_remotely(p.c, p.slot / pool_chunk::word_bits, pool_chunk::bit(p.slot));
    }

    // --- Functions for the arrays of the magazines.

    std::size_t entries_limit(std::size_t i) const noexcept
    {
        return std::clamp(Options.cached_bytes / shape(i).bytes, entries_min, entries_max);
    }

    /// Returns whether a full array should grow, which is so if the array was empty since it was
    /// last full.
    bool is_too_small(closable_magazine& m, std::size_t i) const noexcept
    {
        return m.full() && m.capacity() < entries_limit(i) && (m.was_reloaded() || !m.has_memory());
    }

    /// Enlarges the array, unless another thread grows the pool. In that case, a later free
    /// enlarges the array.
    template <class Source>
    void try_enlarge(Source& source, closable_magazine& m, std::size_t i) noexcept
    {
        std::unique_lock const alone(growing, std::try_to_lock);
        if (!alone)
            return;
        std::unique_lock held(lock);
        unlocked_source<Source> from(source, held);
        enlarge(from, m, i);
    }

    /// Enlarges the array of this thread's magazine. The caller holds both locks.
    template <class Source>
    void enlarge(Source& from, closable_magazine& m, std::size_t i) noexcept
    {
        std::size_t const wanted = m.has_memory() ? m.capacity() * 2 : entries_first;
        std::size_t const entries = std::min(wanted, entries_limit(i));
        chunk const taken = take_verified<false>(from, layout_of<void*>(entries));
        if (taken.data == nullptr)
            return;
        arrays_bytes_ += taken.bytes;
        give_if_any(from, uncount(m.move_to(taken, entries)));
    }

    chunk uncount(chunk array) noexcept
    {
        arrays_bytes_ -= array.bytes;
        return array;
    }

    template <class Source>
    static void give_if_any(Source& source, chunk c) noexcept
    {
        if (c.data != nullptr)
            give(source, c);
    }

    // --- The functions below require that the lock is held and all caches are frozen, or that no
    // other thread is inside a call.

    template <class F>
    void for_each_size(F f) const
    {
        for (cache* c = first(); c != nullptr; c = next(c))
            for (std::size_t i = 0; i < N; ++i)
                f(i, c->of[i]);
    }

    /// Moves each free block that is in a cache, or that another thread freed, to the bitmap of its
    /// chunk.
    void flush_caches() noexcept
    {
        for_each_size([this](std::size_t i, blocks& b) {
            while (!b.magazine.empty()) {
                auto const p = chunks_[i].place_of(b.magazine.pop());
                remote::of(p.c).owner->own.set_free(p.c, p.slot);
            }
            b.collect();
        });
    }

    /// Rebuilds, in each cache, the lists of the chunks that the cache owns.
    void rebuild() noexcept
    {
        for_each_size([this](std::size_t i, blocks& b) { b.rebuild(chunks_[i]); });
    }

    /// Returns the core to the state of a new one, after `detach_all`.
    void restart() noexcept
    {
        arrays_bytes_ = 0;
        for (blocks& b : built_in().of)
            b.clear();
    }

    static bool is_carved(const chunks& all, pool_chunk* c, std::size_t slot) noexcept
    {
        return remote::of(c).owner->own.is_carved(all, c, slot);
    }

    validity classify(std::size_t i, pool_chunk* c, const void* p) const noexcept
    {
        chunks const& all = chunks_[i];
        std::size_t const slot = all.slot_of(c, p);
        if (all.slot_address(c, slot) != p)
            return validity::invalid;
        if constexpr (checks_on) // live bits are atomic, so no freeze is needed
            return c->is_live(slot) ? validity::valid : validity::invalid;
        freeze_guard const frozen(*this);
        bool free = !is_carved(all, c, slot) || c->is_free(slot) || remote::of(c).has(slot);
        for_each_size([&](std::size_t, const blocks& b) { free = free || b.magazine.has(p); });
        return free ? validity::invalid : validity::valid;
    }

    // --- Functions for check::on.

    /// Marks a block as allocated. The caller is inside its cache or holds the lock, so that this
    /// function may read the chunk of the block.
    [[gnu::always_inline]] void mark_allocated(void* block, std::size_t i) noexcept
    {
        unpoison<checks_on>(block, shape(i).bytes);
        if constexpr (checks_on) {
            auto const p = chunks_[i].place_of(block);
            exchange_live(p.c, p.slot, true);
        }
    }

    [[gnu::always_inline]] void mark_freed(void* block, std::size_t i) noexcept
    {
        if constexpr (checks_on)
            clear_live(block, i);
        poison<checks_on>(block, shape(i).bytes);
    }

    /// Stops the process if `block` is not a block in use.
    [[gnu::noinline]] void clear_live(void* block, std::size_t i) noexcept
    {
        std::lock_guard const no_new_chunks(lock);
        pool_chunk* const c = chunks_[i].find(block);
        if (c == nullptr)
            fatal_foreign_free(block);
        std::size_t const slot = chunks_[i].slot_of(c, block);
        std::byte* const address = chunks_[i].slot_address(c, slot);
        if (address == block && exchange_live(c, slot, false))
            return;
        freeze_guard const frozen(*this);
        fatal_bad_free(block, address, shape(i).bytes, is_carved(chunks_[i], c, slot));
    }

    // These numbers agree while all caches are frozen, with |x| for the number of blocks in x:
    //   in use + |magazines| + |free bits| + |remote bits| + |bump ranges| + |not carved|
    //     ==  capacity of all chunks
    std::array<chunks, N> chunks_; // protected by `lock`, except for the constant layout
    std::size_t arrays_bytes_ = 0; // bytes of the arrays of all magazines; protected by `lock`
};

} // namespace mallard
