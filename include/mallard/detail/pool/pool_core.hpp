// A pool without its source. It has a cache with free blocks, and a list of chunks.
#pragma once

#include <mallard/detail/base/event_count.hpp>
#include <mallard/detail/base/no_mutex.hpp>
#include <mallard/detail/base/undo.hpp>
#include <mallard/detail/pool/free_bitmap.hpp>
#include <mallard/detail/pool/free_list.hpp>
#include <mallard/detail/pool/magazine.hpp>

namespace mallard {

/// Fills `out` with blocks of `core`. On failure, frees all blocks that were already allocated.
template <bool Throws, class Core, class Source>
bool allocate_all(Core& core, Source& source, std::span<void*> out) noexcept(!Throws)
{
    std::size_t count = 0;
    undo all([&] { core.deallocate_batch(source, out.first(count)); });
    for (; count < out.size(); ++count) {
        out[count] = core.template allocate<Throws>(source);
        if (out[count] == nullptr)
            return false;
    }
    all.keep();
    return true;
}

/// Blocks of one size, for one thread at a time. While the core waits for its source, other calls
/// may enter the core, to allocate or free without growth. This is for `locked_core`, which
/// releases its lock while the source works, so that other threads continue.
template <pool_options Options>
class pool_core {
    static_assert(is_power_of_two(Options.chunk),
                  "the chunk size of a pool must be a power of two");

    using list = chunk_list<Options>;
    static constexpr bool checks_on = list::checks_on;
    static constexpr bool ordered = Options.order == reuse::ordered;
    using top = std::conditional_t<Options.order == reuse::fifo, queue_top, stack_top>;
    using cache = std::conditional_t<ordered, magazine, free_list<checks_on, top>>;

    static constexpr std::size_t entries_first = 64; // entries in the first array of a magazine
    static constexpr std::size_t entries_max = 1024;

public:
    using layout_type = chunk_layout<Options>;

    constexpr explicit pool_core(slot_shape shape, growth_argument<Options.grow> rule = {}) noexcept
        : chunks_(shape, rule)
    {
        if constexpr (!ordered)
            cache_.made_for(shape.bytes);
    }
    constexpr pool_core(pool_core&& other) noexcept = default;

    /// Writes `owner` to the headers of all chunks, and of chunks that are added later.
    constexpr void set_owner(void* owner) noexcept { chunks_.set_owner(owner); }

    constexpr slot_shape shape() const noexcept { return chunks_.shape(); }

    /// Returns the number of bytes that a source must have for a pool of `count` blocks.
    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        std::size_t const array = ordered ? entries_first * sizeof(void*) : 0;
        return saturating_add(array, layout_type::bytes_for(shape, count));
    }

    /// Returns the layout of the smallest chunk that holds a block.
    static constexpr layout least_chunk(slot_shape shape) noexcept
    {
        return layout_type(shape, Options.grow.limit).least_chunk();
    }

    template <bool Throws, class Source>
    [[gnu::always_inline]] void* allocate(Source& source) noexcept(!Throws)
    {
        return allocate_or([&]() noexcept(!Throws) { return refill<Throws>(source); });
    }

    /// Returns a block from the cache, or else a never-carved one, or else the result of
    /// `refill()`.
    template <class Refill>
    [[gnu::always_inline]] void* allocate_or(Refill refill) noexcept(noexcept(refill()))
    {
        if (!cache_.empty()) [[likely]]
            return mark_allocated(cache_.pop());
        if (free_.can_carve()) [[likely]]
            return mark_allocated(free_.carve(chunks_));
        return refill();
    }

    /// Allocates a free block from the chunks that the core has. Returns null if the core would
    /// have to grow.
    void* allocate_without_growth() noexcept
    {
        return allocate_or([this]() noexcept { return refill_without_growth(); });
    }
    /// Like `allocate_without_growth`, for a caller that has found neither a cached block nor a
    /// never-carved one.
    void* refill_without_growth() noexcept
    {
        return free_.replenish(chunks_) ? take_ready() : nullptr;
    }

    template <class Source>
    [[gnu::always_inline]] void deallocate(Source& source, void* block) noexcept
    {
        mark_freed(block);
        if constexpr (ordered)
            if (cache_.full()) [[unlikely]]
                return overflow(source, block);
        cache_.push(block);
    }

    /// Returns whether the next `deallocate` only pushes the block, and does not call the source.
    bool has_room() const noexcept
    {
        if constexpr (ordered)
            return !cache_.full();
        return true;
    }

    /// Fills `out` with blocks. On failure, allocates nothing.
    template <bool Throws, class Source>
    bool allocate_batch(Source& source, std::span<void*> out) noexcept(!Throws)
    {
        return allocate_all<Throws>(*this, source, out);
    }
    template <class Source>
    void deallocate_batch(Source& source, std::span<void* const> blocks) noexcept
    {
        for (void* const block : blocks)
            deallocate(source, block);
    }

    /// Adds never-carved slots that lie in no chunk of this core, and allocates the first of these
    /// slots. Requires that the core has no free block. `trim` passes free blocks in these slots to
    /// its argument `foreign`.
    void* allocate_of(std::span<std::byte> slots) noexcept
    {
        free_.add(slots);
        return mark_allocated(free_.carve(chunks_));
    }
    /// Returns whether `p` is a free block in the cache or the bump range. O(blocks in the cache).
    bool has_cached(const void* p) const noexcept { return cache_.has(p) || free_.fresh().has(p); }

    bool owns(const void* p) const noexcept { return chunks_.find(p) != nullptr; }

    validity classify(const void* p) const noexcept
    {
        pool_chunk const* const c = chunks_.find(p);
        if (c == nullptr)
            return validity::miss;
        std::size_t const slot = chunks_.slot_of(c, p);
        if (chunks_.slot_address(c, slot) != p || !free_.is_carved(chunks_, c, slot))
            return validity::invalid;
        bool const live = checks_on ? c->is_live(slot) : !c->is_free(slot) && !cache_.has(p);
        return live ? validity::valid : validity::invalid;
    }

    /// Calls `f(block)` for each block in use, in address order.
    template <class F>
    void for_each(F& f)
    {
        flush_cache([](void*) {});
        chunks_.for_each([&](const pool_chunk& c) {
            c.for_each_used([&](std::size_t slot) {
                void* const block = chunks_.slot_address(&c, slot);
                if (!free_.fresh().has(block))
                    f(block);
            });
        });
    }

    void reset() noexcept
    {
        cache_.clear();
        free_.clear(chunks_);
        chunks_.for_each([this](pool_chunk& c) { chunks_.reset_slots(c); });
        rebuild();
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        chunk const array = forget_cache();
        free_ = {};
        chunks_.release(source);
        give_array(source, array);
    }

    /// Discards all memory without returning it. Called when the source frees all of its memory in
    /// one call.
    void forget() noexcept
    {
        cache_ = cache();
        free_ = {};
        chunks_.forget();
    }

    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        trim(source, keep, [](void*) {});
    }

    /// Returns idle chunks to the source, except for `keep` bytes. Calls `foreign(block)` for each
    /// free block that lies in no chunk of this core, and removes the block from the core.
    template <class Source, class Foreign>
    void trim(Source& source, std::size_t keep, Foreign foreign) noexcept
    {
        flush_cache(foreign);
        chunk const array = forget_cache();
        free_.clear(chunks_);
        chunks_.give_idle(source, keep, [](const pool_chunk& c) { return c.is_idle(); });
        rebuild();
        give_array(source, array);
    }

    void add_to(statistics& s) const noexcept
    {
        std::size_t const stride = shape().bytes;
        std::size_t idle = free_.fresh().bytes() / stride; // free, but not in a bitmap
        cache_.for_each([&](const void*) { ++idle; });
        chunks_.for_each([&](const pool_chunk& c) {
            std::size_t const live = c.carved_blocks() - c.free_blocks();
            s.blocks_live += live;
            s.bytes_live += live * stride;
            s.bytes_idle += (c.capacity() - live) * stride;
            s.chunks += 1;
        });
        s.blocks_live -= idle;
        s.bytes_live -= idle * stride;
        s.bytes_idle += idle * stride;
        s.refills += refills_;
        s.flushes += flushes_;
        chunks_.add_to(s);
    }

private:
    [[gnu::always_inline]] void* mark_allocated(void* block) noexcept
    {
        unpoison<checks_on>(block, shape().bytes);
        if constexpr (checks_on)
            set_live(block);
        return block;
    }

    [[gnu::always_inline]] void mark_freed(void* block) noexcept
    {
        if constexpr (checks_on)
            clear_live(block);
        poison<checks_on>(block, shape().bytes);
    }

    [[gnu::noinline]] void set_live(void* block) noexcept
    {
        auto const [c, slot] = chunks_.place_of(block);
        c->live_bits()[slot / c->word_bits] |= c->bit(slot);
    }

    [[gnu::noinline]] void clear_live(void* block) noexcept
    {
        pool_chunk* const c = chunks_.find(block);
        if (c == nullptr)
            fatal_foreign_free(block);
        std::size_t const slot = chunks_.slot_of(c, block);
        std::byte* const address = chunks_.slot_address(c, slot);
        bool const carved = free_.is_carved(chunks_, c, slot);
        if (address != block || !carved || !c->is_live(slot))
            fatal_bad_free(block, address, shape().bytes, carved);
        c->live_bits()[slot / c->word_bits] &= ~c->bit(slot);
    }

    /// Runs the slow path of `allocate`, when the cache is empty and no never-allocated block is
    /// ready.
    template <bool Throws, class Source>
    [[gnu::noinline]] void* refill(Source& source) noexcept(!Throws)
    {
        // The array is allocated before the chunk, because a chunk may use all bytes that the limit
        // has left. If the chunk cannot be allocated, the array is returned.
        if constexpr (ordered)
            if (!cache_.has_memory() && enlarge(source, std::min(entries_first, entries_limit())) &&
                !replenish<false>(source) && cache_.empty())
                give_array(source, forget_cache());
        return replenish<Throws>(source) ? take_ready() : nullptr;
    }

    /// Allocates a block after a successful `replenish`.
    void* take_ready() noexcept
    {
        ++refills_;
        if (!cache_.empty()) // a thread freed a block while the source was called
            return mark_allocated(cache_.pop());
        return mark_allocated(free_.has_recycled() ? recycle() : free_.carve(chunks_));
    }

    /// Makes a block ready to be allocated. Prefers a block that was freed, then one that was never
    /// allocated, and then one from a new chunk. Returns false, or throws, if the source is
    /// exhausted.
    template <bool Throws, class Source>
    bool replenish(Source& source) noexcept(!Throws)
    {
        if (free_.replenish(chunks_))
            return true;
        if (pool_chunk* const c = chunks_.template add_chunk<Throws>(source))
            free_.add(c);
        return free_.replenish(chunks_) || !cache_.empty();
    }

    /// Moves blocks from the bitmaps to the cache, except for one block, which this function
    /// returns. Requires an empty cache.
    void* recycle() noexcept
    {
        void* few[entries_first];
        std::span<void*> const room = refill_room(few);
        std::size_t const count = free_.recycle(chunks_, room);
        cache_.load(room.first(count - 1));
        return room[count - 1];
    }

    /// Returns the array into which a refill writes blocks. A magazine is refilled to half of its
    /// array, so that a few frees after the refill do not overflow the array. A list is refilled
    /// with the blocks of only one page, because it writes a link into each block.
    std::span<void*> refill_room(std::span<void*, entries_first> few) const noexcept
    {
        if constexpr (ordered) {
            if (cache_.capacity() > 1)
                return {cache_.array(), cache_.capacity() / 2};
            return few.first(1);
        } else {
            return few.first(std::clamp(page_bytes / shape().bytes, std::size_t{1}, few.size()));
        }
    }

    /// Runs the slow path of `deallocate` for a full magazine. If the magazine was refilled since
    /// it was last full, the magazine is too small for this program, and its array doubles.
    /// Otherwise the older half of its blocks moves to the bitmaps, at a cost of one bit for each
    /// block.
    template <class Source>
    [[gnu::noinline]] void overflow(Source& source, void* block) noexcept
    {
        std::size_t const capacity = cache_.capacity();
        if (cache_.was_reloaded() && capacity != 0 && capacity < entries_limit())
            enlarge(source, std::min(capacity * 2, entries_limit()));
        if (cache_.full()) {
            std::size_t const older = (cache_.capacity() + 1) / 2;
            free_.put_back(chunks_, cache_.blocks().first(older));
            cache_.drop_oldest(older);
            ++flushes_;
        }
        if (cache_.full()) // still full, because there was no memory for an array
            free_.put_back(chunks_, {&block, 1});
        else
            cache_.push(block);
    }

    std::size_t entries_limit() const noexcept
    {
        // The array may use at most a 64th of the pool's limit. A pool of one chunk is an
        // exception, because its `bytes_for` includes the array.
        std::size_t const limit = chunks_.growth().limit();
        std::size_t most = entries_max;
        if constexpr (!list::single_chunk)
            most = std::clamp(limit / (64 * sizeof(void*)), std::size_t{1}, most);
        return std::clamp(std::min(Options.cached_bytes, limit) / shape().bytes, std::size_t{1},
                          most);
    }

    template <class Source>
    bool enlarge(Source& source, std::size_t entries) noexcept
    {
        auto& growth = chunks_.growth();
        layout const wanted = layout_of<void*>(entries);
        if (!growth.admits(wanted.bytes))
            return false;
        chunk const taken = take_verified<false>(source, wanted);
        if (taken.data == nullptr)
            return false;
        if (!growth.admits(taken.bytes)) { // the source may supply more than requested
            give(source, taken);
            return false;
        }
        growth.took_aside(taken.bytes);
        chunk const old = cache_.move_to(taken, entries);
        growth.gave(old.bytes);
        give_array(source, old);
        return true;
    }

    static void give_array(auto& source, chunk array) noexcept
    {
        if (array.data != nullptr)
            give(source, array);
    }

    /// Empties the cache and returns its array, for the caller to free. The caller frees the chunks
    /// first. They were allocated after the array, and a `buffer` can reuse only the memory that
    /// was allocated last.
    chunk forget_cache() noexcept
    {
        chunk const array = cache_.memory();
        chunks_.growth().gave(array.bytes);
        cache_ = cache();
        return array;
    }

    /// Moves the free blocks of the cache to the bitmaps. Calls `foreign(block)` for each block
    /// that lies in no chunk.
    template <class Foreign>
    void flush_cache(Foreign foreign) noexcept
    {
        pool_chunk* near = nullptr; // chunk of the last block; often of the next block too
        while (!cache_.empty()) {
            void* const block = cache_.pop();
            if (near == nullptr || block < near->begin() || block >= near->end())
                near = chunks_.find(block);
            if (near != nullptr)
                free_.set_free(near, chunks_.slot_of(near, block));
            else
                foreign(block);
        }
        if (free_.fresh().is_used_up() || chunks_.find(free_.fresh().next()) != nullptr)
            return;
        bump_range left = free_.take_fresh();
        for (left.resume(); left.can_carve();)
            foreign(left.carve(shape().bytes));
    }

    void rebuild() noexcept
    {
        free_.rebuild(chunks_, [](auto&) { return true; });
    }

    // These numbers agree between any two calls, with |x| for the number of blocks in x, summed
    // over chunks:
    //   live + |cache| + |free bits| + |bump range| + |not carved|  ==  capacity
    cache cache_;
    free_bitmap<list> free_;
    list chunks_;
    event_count refills_;
    [[no_unique_address]] std::conditional_t<ordered, event_count, no_events> flushes_;
};

template <class Core, std::size_t N, class Rule, bool HasSlabs>
class lazy_cores;

/// The types from which pools and multipools are built, for one mode of `sync`. The modes for
/// several threads are in <mallard/sync.hpp>, so that a program of one thread does not compile
/// them.
template <sync Threads>
struct pool_mode {
    static_assert(Threads == sync::none,
                  "include <mallard/sync.hpp> to use a pool in several threads");

    template <pool_options Options>
    using core = pool_core<Options>;
    template <pool_options Options, std::size_t N, bool HasSlabs>
    using cores = lazy_cores<pool_core<Options>, N, growth_argument<Options.grow>, HasSlabs>;
    template <source Source>
    using source_of = Source;
    using mutex = no_mutex;
};

} // namespace mallard
