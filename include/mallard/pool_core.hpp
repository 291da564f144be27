// What a pool is, without its source: a front of free blocks over a store of
// chunks. `pool` is one of these, `multipool` many over one source.
#pragma once

#include <mallard/chunk_store.hpp>
#include <mallard/free_list.hpp>
#include <mallard/magazine.hpp>

#include <type_traits>

namespace mallard {

template <pool_options Options>
class pool_core {
    static_assert(Options.threads == sync::none,
                  "sync::mutex, lock_free and thread_cached are not in this version of mallard");
    static_assert(is_power_of_two(Options.chunk), "the chunk of a pool is a power of two");

    static constexpr bool watched = Options.checks == check::on;
    static constexpr bool ordered = Options.order == reuse::ordered;
    using front = std::conditional_t<ordered, magazine, free_list<watched>>;

    static constexpr std::size_t entries_first = 64;
    static constexpr std::size_t entries_max = 1024;

public:
    constexpr explicit pool_core(slot_shape shape, growth_function custom = nullptr) noexcept
        : store_(shape, custom)
    {
    }
    constexpr pool_core(pool_core&& other) noexcept = default;

    constexpr slot_shape shape() const noexcept { return store_.shape(); }

    /// Source bytes that hold `count` blocks.
    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        std::size_t const array = ordered ? entries_first * sizeof(void*) : 0;
        return saturating_add(array, chunk_store<Options>::bytes_for(shape, count));
    }

    template <bool Throws, class Source>
    [[gnu::always_inline]] void* allocate(Source& source) noexcept(!Throws)
    {
        if (!front_.empty()) [[likely]]
            return hand_out(front_.pop());
        if (store_.can_carve()) [[likely]]
            return hand_out(store_.carve());
        return refill<Throws>(source);
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

    /// All or nothing.
    template <bool Throws, class Source>
    bool allocate_batch(Source& source, std::span<void*> out) noexcept(!Throws)
    {
        struct undo {
            pool_core& self;
            Source& source;
            std::span<void*> out;
            std::size_t count = 0;
            ~undo()
            {
                if (count < out.size())
                    self.deallocate_batch(source, out.first(count));
            }
        } done{*this, source, out};

        for (; done.count < out.size(); ++done.count) {
            void* const block = allocate<Throws>(source);
            if (block == nullptr)
                return false;
            out[done.count] = block;
        }
        return true;
    }

    template <class Source>
    void deallocate_batch(Source& source, std::span<void* const> blocks) noexcept
    {
        for (void* const block : blocks)
            deallocate(source, block);
    }

    bool owns(const void* p) const noexcept { return store_.find(p) != nullptr; }

    validity classify(const void* p) const noexcept
    {
        pool_chunk const* const c = store_.find(p);
        if (c == nullptr)
            return validity::miss;
        std::size_t const slot = store_.slot_of(c, p);
        if (store_.slot_address(c, slot) != p || !store_.is_carved(c, slot))
            return validity::invalid;
        bool live = !c->is_free(slot);
        if constexpr (watched)
            live = c->is_live(slot);
        else if (live)
            front_.for_each([&](const void* block) { live = live && block != p; });
        return live ? validity::valid : validity::invalid;
    }

    template <class F>
    void for_each(F& f)
    {
        settle();
        store_.for_each_elsewhere(f);
    }

    void reset() noexcept
    {
        front_.clear();
        store_.reset();
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        chunk const array = forget_front();
        store_.release(source);
        give_array(source, array);
    }

    void forget() noexcept
    {
        front_ = front();
        store_.forget();
    }

    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        settle();
        chunk const array = forget_front();
        store_.trim(source, keep);
        give_array(source, array);
    }

    void add_to(statistics& s) const noexcept
    {
        std::size_t in_front = 0;
        front_.for_each([&](const void*) { ++in_front; });
        store_.add_to(s);
        s.blocks_live -= in_front;
        s.bytes_live -= in_front * shape().bytes;
        s.bytes_idle += in_front * shape().bytes;
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
        pool_chunk* const c = store_.chunk_of(block);
        std::size_t const slot = store_.slot_of(c, block);
        c->live_bits()[slot / c->word_bits] |= c->bit(slot);
    }

    [[gnu::noinline]] void clear_live(void* block) noexcept
    {
        pool_chunk* const c = store_.find(block);
        if (c == nullptr)
            fatal_foreign_free(block);
        std::size_t const slot = store_.slot_of(c, block);
        std::byte* const address = store_.slot_address(c, slot);
        if (!store_.is_carved(c, slot))
            fatal_foreign_free(block);
        if (address != block)
            fatal_interior_free(block, address, shape().bytes);
        if (!c->is_live(slot))
            fatal_double_free(block, shape().bytes);
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
                !store_.template replenish<false>(source))
                give_array(source, forget_front());
        if (!store_.template replenish<Throws>(source))
            return nullptr;
        return hand_out(store_.has_recycled() ? recycle() : store_.carve());
    }

    /// Brings recycled blocks to an empty front, and gives the last of them.
    void* recycle() noexcept
    {
        void* few[entries_first];
        std::span<void*> const room = refill_room(few);
        std::size_t const count = store_.recycle(room);
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
        bool const enlarged = front_.was_reloaded() && capacity != 0 &&
                              capacity < entries_limit() &&
                              enlarge(source, std::min(capacity * 2, entries_limit()));
        if (!enlarged) {
            std::size_t const older = (capacity + 1) / 2;
            store_.put_back(front_.blocks().first(older));
            front_.drop_oldest(older);
        }
        if (front_.full()) // without an array: there was no memory for one
            store_.put_back({&block, 1});
        else
            front_.push(block);
    }

    std::size_t entries_limit() const noexcept
    {
        std::size_t const bytes = std::min(Options.cached_bytes, Options.grow.limit);
        return std::clamp(bytes / shape().bytes, std::size_t{1}, entries_max);
    }

    template <class Source>
    bool enlarge(Source& source, std::size_t entries) noexcept
    {
        layout const wanted = layout_of<void*>(entries);
        if (!store_.growth().admits(wanted.bytes))
            return false;
        chunk const taken = try_take(source, wanted);
        if (taken.data == nullptr)
            return false;
        if (!store_.growth().admits(taken.bytes)) { // the source rounds up
            give(source, taken);
            return false;
        }
        store_.growth().took_aside(taken.bytes);
        chunk const old = front_.move_to(taken, entries);
        store_.growth().gave(old.bytes);
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
        store_.growth().gave(array.bytes);
        front_ = front();
        return array;
    }

    /// The free blocks of the front go to the store.
    void settle() noexcept
    {
        for (pool_chunk* near = nullptr; !front_.empty();)
            store_.put_back_near(near, front_.pop());
    }

    // Between any two calls, with |x| for the blocks in x, summed over chunks:
    //   live + |front| + |free in the store| + |window| + |not carved|  ==  capacity
    front front_;
    chunk_store<Options> store_;
};

} // namespace mallard
