// What a pool is, without its source: a front of free blocks over a store of
// chunks. `pool` is one of these, `multipool` many over one source.
#pragma once

#include <mallard/detail/base/event_count.hpp>
#include <mallard/detail/pool/chunk_store.hpp>
#include <mallard/detail/pool/core_array.hpp>
#include <mallard/detail/pool/free_list.hpp>
#include <mallard/detail/pool/magazine.hpp>

#include <type_traits>

namespace mallard {

/// One thread at a time. A source may call back into the same core while it
/// takes, to allocate and to free what needs no growth: `locked_core` does so for
/// other threads.
template <pool_options Options>
class pool_core {
    static_assert(is_power_of_two(Options.chunk), "the chunk of a pool is a power of two");

    using supply = chunk_supply<Options>;
    static constexpr bool watched = Options.checks == check::on;
    static constexpr bool ordered = Options.order == reuse::ordered;
    using top = std::conditional_t<Options.order == reuse::fifo, queue_top, stack_top>;
    using front = std::conditional_t<ordered, magazine, free_list<watched, top>>;

    static constexpr std::size_t entries_first = 64;
    static constexpr std::size_t entries_max = 1024;

public:
    using geometry = typename supply::geometry;

    constexpr explicit pool_core(slot_shape shape, growth_argument<Options.grow> rule = {}) noexcept
        : supply_(shape, rule)
    {
        if constexpr (!ordered)
            front_.made_for(this->shape());
    }
    constexpr pool_core(pool_core&& other) noexcept = default;

    constexpr void lead_to(void* owner) noexcept { supply_.lead_to(owner); }

    constexpr slot_shape shape() const noexcept { return supply_.cut().shape(); }

    /// Source bytes that hold `count` blocks.
    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        std::size_t const array = ordered ? entries_first * sizeof(void*) : 0;
        return saturating_add(array, geometry::bytes_for(shape, count));
    }

    template <bool Throws, class Source>
    [[gnu::always_inline]] void* allocate(Source& source) noexcept(!Throws)
    {
        return allocate_or([&]() noexcept(!Throws) { return refill<Throws>(source); });
    }

    /// When no block is at hand, what `refill()` gives.
    template <class Refill>
    [[gnu::always_inline]] void* allocate_or(Refill refill) noexcept(noexcept(refill()))
    {
        if (!front_.empty()) [[likely]]
            return hand_out(front_.pop());
        if (store_.can_carve()) [[likely]]
            return hand_out(store_.carve(supply_.cut()));
        return refill();
    }

    template <class Source>
    [[gnu::always_inline]] void deallocate(Source& source, void* block) noexcept
    {
        take_back(block);
        if constexpr (ordered)
            if (front_.full()) [[unlikely]]
                return overflow(source, block);
        front_.push(block);
    }

    /// Whether a free is nothing but a push.
    bool has_room() const noexcept
    {
        if constexpr (ordered)
            return !front_.full();
        return true;
    }

    /// All or nothing.
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

    /// Whether the next block would need a chunk, when none is at hand.
    bool is_used_up() noexcept { return !store_.replenish(supply_.cut()); }

    /// For whoever has slots for it, when it `is_used_up()`. Those that are free again are
    /// to be taken out before `trim`, which knows chunks alone.
    void borrow(std::span<std::byte> slots) noexcept { store_.borrow(slots); }
    front& at_hand() noexcept { return front_; }

    /// Puts the slots that are `lent(slot)` and were not given out at hand.
    template <class Test>
    void gather(Test lent) noexcept
    {
        if (store_.window().is_used_up() || !lent(store_.window().next()))
            return;
        carve_window left = store_.take_window();
        for (left.show(); left.can_carve();)
            front_.push(left.carve(shape().bytes));
    }

    bool has_at_hand(const void* p) const noexcept
    {
        return front_.has(p) || store_.is_in_window(p);
    }

    bool owns(const void* p) const noexcept { return supply_.find(p) != nullptr; }

    validity classify(const void* p) const noexcept
    {
        pool_chunk const* const c = supply_.find(p);
        if (c == nullptr)
            return validity::miss;
        std::size_t const slot = supply_.cut().slot_of(c, p);
        if (supply_.cut().slot_address(c, slot) != p || !store_.is_carved(supply_.cut(), c, slot))
            return validity::invalid;
        bool live = !c->is_free(slot);
        if constexpr (watched)
            live = c->is_live(slot);
        else if (live)
            live = !front_.has(p);
        return live ? validity::valid : validity::invalid;
    }

    /// `f(block)` for each block in use, in address order.
    template <class F>
    void for_each(F& f)
    {
        settle();
        supply_.for_each([&](const pool_chunk& c) {
            c.for_each_used([&](std::size_t slot) {
                void* const block = supply_.cut().slot_address(&c, slot);
                if (!store_.is_in_window(block))
                    f(block);
            });
        });
    }

    void reset() noexcept
    {
        front_.clear();
        store_.forget(supply_);
        supply_.for_each([](pool_chunk& c) { c.template uncarve<watched>(geometry::header); });
        list_all();
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        chunk const array = forget_front();
        store_ = {};
        supply_.release(source);
        give_array(source, array);
    }

    /// For a source that takes everything back by itself.
    void forget() noexcept
    {
        front_ = front();
        store_ = {};
        supply_.forget();
    }

    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        settle();
        chunk const array = forget_front();
        store_.forget(supply_);
        supply_.give_idle(source, keep,
                          [](const pool_chunk& c) { return c.free_blocks() == c.carved_blocks(); });
        list_all();
        give_array(source, array);
    }

    void add_to(statistics& s) const noexcept
    {
        std::size_t const stride = shape().bytes;
        std::size_t idle = store_.window_bytes() / stride; // those not free in a chunk
        front_.for_each([&](const void*) { ++idle; });
        supply_.for_each([&](const pool_chunk& c) {
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
        supply_.add_to(s);
    }

private:
    [[gnu::always_inline]] void* hand_out(void* block) noexcept
    {
        unpoison<watched>(block, shape().bytes);
        if constexpr (watched)
            set_live(block);
        return block;
    }

    [[gnu::always_inline]] void take_back(void* block) noexcept
    {
        if constexpr (watched)
            clear_live(block);
        poison<watched>(block, shape().bytes);
    }

    [[gnu::noinline]] void set_live(void* block) noexcept
    {
        pool_chunk* const c = supply_.chunk_of(block);
        std::size_t const slot = supply_.cut().slot_of(c, block);
        c->live_bits()[slot / c->word_bits] |= c->bit(slot);
    }

    [[gnu::noinline]] void clear_live(void* block) noexcept
    {
        pool_chunk* const c = supply_.find(block);
        if (c == nullptr)
            fatal_foreign_free(block);
        std::size_t const slot = supply_.cut().slot_of(c, block);
        std::byte* const address = supply_.cut().slot_address(c, slot);
        bool const carved = store_.is_carved(supply_.cut(), c, slot);
        if (address != block || !carved || !c->is_live(slot))
            fatal_bad_free(block, address, shape().bytes, carved);
        c->live_bits()[slot / c->word_bits] &= ~c->bit(slot);
    }

    /// The front is empty, and nothing to carve at hand.
    template <bool Throws, class Source>
    [[gnu::noinline]] void* refill(Source& source) noexcept(!Throws)
    {
        // The array comes before the chunk, which may take all that the limit has
        // left; but not if there is no chunk with it.
        if constexpr (ordered)
            if (!front_.has_memory() && enlarge(source, std::min(entries_first, entries_limit())) &&
                !replenish<false>(source) && front_.empty())
                give_array(source, forget_front());
        if (!replenish<Throws>(source))
            return nullptr;
        ++refills_;
        if (!front_.empty()) // while the source was taking
            return hand_out(front_.pop());
        return hand_out(store_.has_recycled() ? recycle() : store_.carve(supply_.cut()));
    }

    /// False, or throws, when the source is dry. Else there is a block to give.
    /// Carves what there is before it grows.
    template <bool Throws, class Source>
    bool replenish(Source& source) noexcept(!Throws)
    {
        if (store_.replenish(supply_.cut()))
            return true;
        pool_chunk* const c = supply_.template make<Throws>(source);
        if (c != nullptr)
            store_.add(c);
        return store_.replenish(supply_.cut()) || !front_.empty();
    }

    /// Brings recycled blocks to an empty front, and gives the last of them.
    void* recycle() noexcept
    {
        void* few[entries_first];
        std::span<void*> const room = refill_room(few);
        std::size_t const count = store_.recycle(supply_.cut(), room);
        front_.load(room.first(count - 1));
        return room[count - 1];
    }

    /// Half of the array, so that a few frees after it do not overflow; or as
    /// many as share a page, since a list writes a link into each.
    std::span<void*> refill_room(std::span<void*, entries_first> few) const noexcept
    {
        if constexpr (ordered) {
            if (front_.capacity() > 1)
                return {front_.array(), front_.capacity() / 2};
            return few.first(1);
        } else {
            return few.first(std::clamp(page_bytes / shape().bytes, std::size_t{1}, few.size()));
        }
    }

    /// Makes room in a full front for one more. An array that has been emptied
    /// since it was last full is too small for this program: it doubles. Else
    /// the older half goes to the bitmaps, where it costs a bit each.
    template <class Source>
    [[gnu::noinline]] void overflow(Source& source, void* block) noexcept
    {
        std::size_t const capacity = front_.capacity();
        if (front_.was_reloaded() && capacity != 0 && capacity < entries_limit())
            enlarge(source, std::min(capacity * 2, entries_limit()));
        if (front_.full()) {
            std::size_t const older = (front_.capacity() + 1) / 2;
            store_.put_back(supply_, front_.blocks().first(older));
            front_.drop_oldest(older);
            ++flushes_;
        }
        if (front_.full()) // without an array: there was no memory for one
            store_.put_back(supply_, {&block, 1});
        else
            front_.push(block);
    }

    std::size_t entries_limit() const noexcept
    {
        // The array takes at most a 64th of a limit; `bytes_for` counts one entry for a single
        // step.
        std::size_t const limit = supply_.growth().limit();
        std::size_t most = entries_max;
        if constexpr (!geometry::single)
            most = std::clamp(limit / (64 * sizeof(void*)), std::size_t{1}, most);
        return std::clamp(std::min(Options.cached_bytes, limit) / shape().bytes, std::size_t{1},
                          most);
    }

    template <class Source>
    bool enlarge(Source& source, std::size_t entries) noexcept
    {
        layout const wanted = layout_of<void*>(entries);
        if (!supply_.growth().admits(wanted.bytes))
            return false;
        chunk const taken = try_take(source, wanted);
        if (taken.data == nullptr)
            return false;
        if (!supply_.growth().admits(taken.bytes)) { // the source rounds up
            give(source, taken);
            return false;
        }
        supply_.growth().took_aside(taken.bytes);
        chunk const old = front_.move_to(taken, entries);
        supply_.growth().gave(old.bytes);
        give_array(source, old);
        return true;
    }

    template <class Source>
    void give_array(Source& source, chunk array) noexcept
    {
        if (array.data != nullptr)
            give(source, array);
    }

    /// Empties the front. Its array is the caller's to give back, after the
    /// chunks: it was taken before them, and a buffer takes back only the last.
    chunk forget_front() noexcept
    {
        chunk const array = front_.memory();
        supply_.growth().gave(array.bytes);
        front_ = front();
        return array;
    }

    /// The free blocks of the front go to the store.
    void settle() noexcept
    {
        pool_chunk* near = nullptr; // of the last: neighbours are often neighbours
        while (!front_.empty()) {
            void* const block = front_.pop();
            if (near == nullptr || block < near->begin() || block >= near->end())
                near = supply_.find(block);
            store_.set_free(near, supply_.cut().slot_of(near, block));
        }
    }

    void list_all() noexcept
    {
        store_.list(supply_, [](const pool_chunk&) { return true; });
    }

    // Between any two calls, with |x| for the blocks in x, summed over chunks:
    //   live + |front| + |free in the store| + |window| + |not carved|  ==  capacity
    front front_;
    chunk_store<geometry> store_;
    supply supply_;
    event_count refills_;
    [[no_unique_address]] std::conditional_t<ordered, event_count, no_events> flushes_;
};

} // namespace mallard
