// What a pool or a multipool of `sync::thread_cached` is: chunks that all threads
// share, and for each thread a front with the blocks it has at hand.
#pragma once

#include <mallard/detail/pool/pool_core.hpp>
#include <mallard/detail/threads/cached_fronts.hpp>

namespace mallard {

/// `N` sizes. A thread allocates from and frees to its own front, without a lock
/// or an atomic operation; a front gets chunks one at a time and owns them for
/// good. What a thread looks at when its front has nothing, in this order: what
/// others have freed of its chunks; the fronts of dead threads; the source; the
/// fronts of all others, frozen for the moment. So memory is refused only when no
/// block is free anywhere.
///
/// A front without memory does not exist: a thread that cannot have one works
/// under the lock, slowly.
template <pool_options Options, std::size_t N>
class cached_core : public cached_fronts<Options, N> {
    using base = cached_fronts<Options, N>;
    using base::arrays_bytes_;
    using base::count_out;
    using base::first;
    using base::give_if_any;
    using base::growing;
    using base::here;
    using base::house;
    using base::is_carved;
    using base::lock;
    using base::next;
    using base::supplies_;
    using base::watched;
    using typename base::blocks;
    using typename base::front;

    static constexpr std::size_t entries_min = 4; // as bytes, no less than later_source needs
    static constexpr std::size_t entries_first = 64;
    static constexpr std::size_t entries_max = 1024;

public:
    using base::base;
    using base::shape;
    using typename base::layout_type;

    template <bool Throws, class Source>
    [[gnu::always_inline]] void* allocate(Source& source, std::size_t i = 0) noexcept(!Throws)
    {
        if (auto* const f = static_cast<front*>(here()); f != nullptr) [[likely]] {
            f->announce();
            if (void* const block = f->of[i].free.try_pop(); block != nullptr) [[likely]] {
                hand_out(i, block);
                f->leave();
                return block;
            }
        }
        return refill<Throws>(source, i);
    }

    template <class Source>
    [[gnu::always_inline]] void deallocate(Source& source, void* block, std::size_t i = 0) noexcept
    {
        take_back(i, block);
        if (auto* const f = static_cast<front*>(here()); f != nullptr) [[likely]] {
            f->announce();
            if (f->of[i].free.try_push(block)) [[likely]]
                return f->leave();
        }
        overflow(source, i, block);
    }

    /// All or nothing.
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

private:
    // --- slow paths. A thread is either inside its front or waits for a lock,
    // never both: who freezes holds the lock while it waits for all to leave.

    /// The front has nothing at hand, or there is none, or it is frozen.
    template <bool Throws, class Source>
    [[gnu::noinline]] void* refill(Source& source, std::size_t i) noexcept(!Throws)
    {
        for (;;) {
            front* const f = this->own(source);
            if (f == nullptr)
                return grow<Throws>(source, i, nullptr);
            void* block = nullptr;
            bool const entered = f->enter();
            if (entered)
                block = f->of[i].take(supplies_[i]);
            if (block != nullptr)
                hand_out(i, block);
            f->leave();
            if (block != nullptr)
                return block;
            if (entered)
                return grow<Throws>(source, i, f);
            this->wait_for_thaw();
        }
    }

    /// The front is full, or there is none, or it is frozen.
    template <class Source>
    [[gnu::noinline]] void overflow(Source& source, std::size_t i, void* block) noexcept
    {
        for (bool may_enlarge = true;;) {
            // A free does not wait for who grows.
            front* const f = this->own_at_once(source);
            if (f == nullptr)
                return free_without_front(i, block);
            blocks& b = f->of[i];
            bool const entered = f->enter();
            bool const enlarges = entered && may_enlarge && is_too_small(i, b.free);
            if (entered && !enlarges)
                b.push(supplies_[i], block);
            f->leave();
            if (enlarges)
                enlarge_by_the_way(source, i, b.free);
            else if (entered)
                return;
            else
                this->wait_for_thaw();
            may_enlarge = may_enlarge && !enlarges;
        }
    }

    /// One thread at a time; it looks again, since the one before may have grown.
    /// `f` is the caller's own front, or null.
    template <bool Throws, class Source>
    void* grow(Source& source, std::size_t i, front* f) noexcept(!Throws)
    {
        std::lock_guard const alone(growing);
        std::unique_lock held(lock);
        unlocked_source<Source> from(source, held);
        blocks without_front;
        blocks& to = f != nullptr ? f->of[i] : without_front;
        if (f != nullptr && !to.free.has_memory())
            enlarge(from, i, to.free);
        void* block = to.take(supplies_[i]);
        if (block == nullptr)
            block = f != nullptr ? take_from_idle(i, to) : take_from_all(i, to);
        if (block == nullptr)
            if (pool_chunk* const c = supplies_[i].template add_chunk<false>(from))
                block = take_new(i, c, f, to);
        if (block == nullptr)
            block = take_from_all(i, to);
        if constexpr (Throws) // in the source's own words
            if (block == nullptr)
                block = take_new(i, supplies_[i].template add_chunk<true>(from), f, to);
        if (block != nullptr)
            hand_out(i, block);
        return block;
    }

    void* take_from_idle(std::size_t i, blocks& to) noexcept
    {
        return take_from_fronts(i, to, [](const front& f) { return f.is_idle(); });
    }

    /// From its own too: something may have been freed while the source said no.
    void* take_from_all(std::size_t i, blocks& to) noexcept
    {
        frozen const still(*this);
        void* const block = to.take(supplies_[i]);
        return block != nullptr ? block
                                : take_from_fronts(i, to, [](const front&) { return true; });
    }

    template <class Which>
    void* take_from_fronts(std::size_t i, blocks& to, Which which) noexcept
    {
        void* block = nullptr;
        for (front* f = first(); f != nullptr && block == nullptr; f = next(f))
            if (&f->of[i] != &to && which(*f))
                block = to.take_from(f->of[i], supplies_[i]);
        return block;
    }

    /// The owner of a new chunk is the front that asked, or else the pool's own.
    void* take_new(std::size_t i, pool_chunk* c, front* f, blocks& to) noexcept
    {
        if (f != nullptr) {
            to.add(c);
            return to.take(supplies_[i]);
        }
        frozen const still(*this);
        house().of[i].add(c);
        return to.take_from(house().of[i], supplies_[i]);
    }

    void free_without_front(std::size_t i, void* block) noexcept
    {
        std::lock_guard const no_trim(lock);
        auto const p = supplies_[i].place_of(block);
        blocks::free_remotely(p.c, p.slot / pool_chunk::word_bits, pool_chunk::bit(p.slot));
    }

    // --- arrays
    std::size_t entries_limit(std::size_t i) const noexcept
    {
        return std::clamp(Options.cached_bytes / shape(i).bytes, entries_min, entries_max);
    }

    /// Whether a full array should grow: it has been emptied since it was last full.
    bool is_too_small(std::size_t i, gated_magazine& free) const noexcept
    {
        return free.full() && free.capacity() < entries_limit(i) &&
               (free.was_reloaded() || !free.has_memory());
    }

    template <class Source>
    void enlarge_by_the_way(Source& source, std::size_t i, gated_magazine& free) noexcept
    {
        std::unique_lock const alone(growing, std::try_to_lock);
        if (!alone) // some later free will
            return;
        std::unique_lock held(lock);
        unlocked_source<Source> from(source, held);
        enlarge(from, i, free);
    }

    /// With both locks held; of this thread's own front.
    template <class Source>
    void enlarge(Source& from, std::size_t i, gated_magazine& free) noexcept
    {
        std::size_t const wanted = free.has_memory() ? free.capacity() * 2 : entries_first;
        std::size_t const entries = std::min(wanted, entries_limit(i));
        chunk const taken = try_take(from, layout_of<void*>(entries));
        if (taken.data == nullptr)
            return;
        arrays_bytes_ += taken.bytes;
        give_if_any(from, count_out(free.move_to(taken, entries)));
    }

    // --- check::on

    /// Inside the front or under the lock: it looks for the block's chunk.
    [[gnu::always_inline]] void hand_out(std::size_t i, void* block) noexcept
    {
        unpoison<watched>(block, shape(i).bytes);
        if constexpr (watched) {
            auto const p = supplies_[i].place_of(block);
            exchange_live(p.c, p.slot, true);
        }
    }

    [[gnu::always_inline]] void take_back(std::size_t i, void* block) noexcept
    {
        if constexpr (watched)
            clear_live(i, block);
        poison<watched>(block, shape(i).bytes);
    }

    [[gnu::noinline]] void clear_live(std::size_t i, void* block) noexcept
    {
        std::lock_guard const no_new_chunks(lock);
        pool_chunk* const c = supplies_[i].find(block);
        if (c == nullptr)
            fatal_foreign_free(block);
        std::size_t const slot = supplies_[i].slot_of(c, block);
        std::byte* const address = supplies_[i].slot_address(c, slot);
        if (address == block && exchange_live(c, slot, false))
            return;
        frozen const still(*this);
        fatal_bad_free(block, address, shape(i).bytes, is_carved(supplies_[i], c, slot));
    }
};

} // namespace mallard
