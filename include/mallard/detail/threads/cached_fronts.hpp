// What all threads share of a pool or multipool of `sync::thread_cached`, their
// fronts included, and what is done to all of it at once.
#pragma once

#include <mallard/detail/threads/cached_blocks.hpp>
#include <mallard/detail/threads/fronts_of.hpp>

#include <algorithm>

namespace mallard {

template <pool_options Options>
using cached_supply = chunk_list<Options.with(reuse::ordered), remote_room>;

/// The blocks of `N` sizes that one thread has at hand: two lines a size, of which
/// one has its magazine and nothing that another thread writes to.
template <pool_options Options, std::size_t N>
struct alignas(cache_line_bytes) cached_front : thread_front {
    std::array<cached_blocks<cached_supply<Options>>, N> of;
    static_assert(sizeof of[0] == 2 * cache_line_bytes);
    chunk taken; // null: it is part of the pool

    void set_open(bool open) noexcept
    {
        for (auto& blocks : of)
            open ? blocks.free.open() : blocks.free.shut();
    }
};

template <pool_options Options, std::size_t N>
class cached_fronts : public fronts_of<cached_front<Options, N>> {
protected:
    using front = cached_front<Options, N>;
    using supply = cached_supply<Options>;
    using blocks = cached_blocks<supply>;
    using remote = remote_frees<supply>;
    using fronts_of<front>::first;
    using fronts_of<front>::growing;
    using fronts_of<front>::house;
    using fronts_of<front>::lock;
    using fronts_of<front>::next;
    static constexpr bool watched = supply::checks_on;

public:
    using layout_type = chunk_layout<Options.with(reuse::ordered), remote_room>;

    template <class Rule>
    constexpr cached_fronts(const std::array<slot_shape, N>& shapes, Rule rule) noexcept
        : cached_fronts(shapes, rule, std::make_index_sequence<N>())
    {
    }

    /// Of one size.
    template <class Rule>
    constexpr cached_fronts(slot_shape shape, Rule rule) noexcept
        requires(N == 1)
        : cached_fronts(std::array{shape}, rule)
    {
    }

    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        return layout_type::bytes_for(shape, count);
    }

    constexpr void set_owner(void* owner) noexcept
    {
        for (supply& s : supplies_)
            s.set_owner(owner);
    }

    constexpr slot_shape shape(std::size_t i = 0) const noexcept { return supplies_[i].shape(); }

    bool owns(const void* p) const noexcept
    {
        std::lock_guard const no_new_chunks(lock);
        return std::any_of(supplies_.begin(), supplies_.end(),
                           [p](auto& s) { return s.find(p) != nullptr; });
    }

    validity classify(const void* p) const noexcept
    {
        std::lock_guard const no_new_chunks(lock);
        for (std::size_t i = 0; i < N; ++i)
            if (pool_chunk* const c = supplies_[i].find(p))
                return classify(i, c, p);
        return validity::miss;
    }

    /// Locked only at first, so that `f` may free.
    template <class F>
    void for_each(F& f)
    {
        {
            std::lock_guard const alone(lock);
            frozen const still(*this);
            settle();
        }
        for (supply const& s : supplies_)
            s.for_each([&](pool_chunk& c) {
                auto const& owner = remote::of(&c).owner->own;
                c.for_each_used([&](std::size_t slot) {
                    void* const block = s.slot_address(&c, slot);
                    if (!owner.fresh().has(block))
                        f(block);
                });
            });
    }

    void reset() noexcept
    {
        std::lock_guard const alone(lock);
        frozen const still(*this);
        for_each_cache([](std::size_t, blocks& b) { b.clear(); });
        for (supply& s : supplies_)
            s.for_each([&s](pool_chunk& c) {
                s.reset_slots(c);
                remote::begin(&c, remote::of(&c).owner);
            });
        list_all();
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        this->part();
        for (supply& s : supplies_)
            s.release(source);
        for_each_cache([&](std::size_t, blocks& b) { give_if_any(source, b.forget_array()); });
        this->give_all(source);
        begin_anew();
    }

    /// For a source that takes everything back by itself.
    void forget() noexcept
    {
        this->part();
        for (supply& s : supplies_)
            s.forget();
        this->forget_all();
        for (blocks& b : house().of)
            b.forget_array();
        begin_anew();
    }

    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        std::lock_guard const nobody_grows(growing);
        later_source<Source> later(source); // which may itself have locks
        std::lock_guard const alone(lock);
        frozen const still(*this);
        settle();
        for_each_cache(
            [&](std::size_t, blocks& b) { give_if_any(later, count_out(b.forget_array())); });
        for_each_cache([&](std::size_t i, blocks& b) { b.own.clear(supplies_[i]); });
        for (supply& s : supplies_)
            s.give_idle(later, keep, [](const pool_chunk& c) { return c.is_idle(); });
        list_all();
        this->give_idle(later, owns_nothing);
    }

    void add_to(statistics& s) const noexcept
    {
        std::lock_guard const alone(lock);
        frozen const still(*this);
        for (supply const& of : supplies_) {
            std::size_t const stride = of.shape().bytes;
            of.for_each([&](pool_chunk& c) {
                std::size_t const live =
                    c.carved_blocks() - c.free_blocks() - remote::of(&c).count(c);
                s.blocks_live += live;
                s.bytes_live += live * stride;
                s.bytes_idle += (c.capacity() - live) * stride;
                s.chunks += 1;
            });
            of.add_to(s);
        }
        for_each_cache([&](std::size_t i, const blocks& b) {
            std::size_t const stride = shape(i).bytes;
            std::size_t const idle = b.free.blocks().size() + b.own.fresh().bytes() / stride;
            s.blocks_live -= idle;
            s.bytes_live -= idle * stride;
            s.bytes_idle += idle * stride;
            s.refills += b.refills;
            s.flushes += b.flushes;
        });
        s.bytes_taken += this->bytes() + arrays_bytes_;
    }

protected:
    chunk count_out(chunk array) noexcept
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

    // --- with the lock held and all fronts frozen, or no thread inside a call
    template <class F>
    void for_each_cache(F f) const
    {
        for (front* at = first(); at != nullptr; at = next(at))
            for (std::size_t i = 0; i < N; ++i)
                f(i, at->of[i]);
    }

    static bool owns_nothing(const front& f) noexcept
    {
        return std::all_of(f.of.begin(), f.of.end(), [](auto& b) { return !b.owns_chunks; });
    }

    /// Every free block gets its bit with the owner of its chunk.
    void settle() noexcept
    {
        for_each_cache([this](std::size_t i, blocks& b) {
            while (!b.free.empty()) {
                auto const p = supplies_[i].place_of(b.free.pop());
                remote::of(p.c).owner->own.set_free(p.c, p.slot);
            }
            b.collect();
        });
    }

    void list_all() noexcept
    {
        for_each_cache([this](std::size_t i, blocks& b) { b.list(supplies_[i]); });
    }

    static bool is_carved(const supply& s, pool_chunk* c, std::size_t slot) noexcept
    {
        return remote::of(c).owner->own.is_carved(s, c, slot);
    }

    validity classify(std::size_t i, pool_chunk* c, const void* p) const noexcept
    {
        std::size_t const slot = supplies_[i].slot_of(c, p);
        if (supplies_[i].slot_address(c, slot) != p)
            return validity::invalid;
        if constexpr (watched) // nobody has to stand still for that
            return c->is_live(slot) ? validity::valid : validity::invalid;
        frozen const still(*this);
        if (!is_carved(supplies_[i], c, slot))
            return validity::invalid;
        bool free = c->is_free(slot) || remote::of(c).has(slot);
        for_each_cache([&](std::size_t, const blocks& b) {
            b.free.for_each([&](const void* block) { free = free || block == p; });
        });
        return free ? validity::invalid : validity::valid;
    }

    void begin_anew() noexcept
    {
        arrays_bytes_ = 0;
        for (blocks& b : house().of)
            b.clear();
    }

    // While all fronts are frozen, with |x| for the blocks in x:
    //   live + |magazines| + |free bits| + |remote bits| + |windows| + |not carved|
    //     ==  capacity of all chunks
    std::array<supply, N> supplies_; // under `lock`, but for their constant geometry
    std::size_t arrays_bytes_ = 0;   // of the magazines; under `lock`

private:
    template <class Rule, std::size_t... Index>
    constexpr cached_fronts(const std::array<slot_shape, N>& shapes, Rule rule,
                            std::index_sequence<Index...>) noexcept
        : supplies_{supply(shapes[Index], rule)...}
    {
    }
};

} // namespace mallard
