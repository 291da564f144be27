// The slots of a shared slot map: where they are, and what threads agree on.
#pragma once

#include <mallard/detail/slots/reserved_slots.hpp>
#include <mallard/key.hpp>

#include <atomic>

namespace mallard {

/// Beside each slot, and never given back while the map lives, so that any key may look:
///
///     state   { generation 32 | live 1 | guards 31 }
///
///     { 0, 0, 0 }   never used
///     { g, 0, 0 }   one thread's, which destroys the element, or makes it, or leaves
///                   the slot to the pool as free; or retired
///     { g, 1, n }   the element of generation g, with n guards
///     { g, 0, n }   removed; n guards still use it
///
///     insert   { g, 0, 0 } -> { g, 1, 0 }   a store, by the thread that has the slot
///     get      { g, 1, n } -> { g, 1, n+1 } compare-exchange: whole, so that generation
///                                           and "live" hold at the moment of the count
///     remove   { g, 1, n } -> { g, 0, n }   compare-exchange
///     a guard's end     n  -> n-1           a subtraction
///     finish   { g, 0, 0 } -> { g+1, 0, 0 } a store, by who made it { g, 0, 0 }
///
/// Each operation takes effect at the one change, or the one load that refuses it, that
/// is named here; so they are linearisable. Only remove leaves "live", and after it no
/// get succeeds: the guards only fall, exactly one change reaches { g, 0, 0 }, and who
/// makes it is alone with the slot. tests/models/shared_slot.pml has the proof.
///
/// `read` copies between two loads of the state. Words are stored with release by an
/// insert and loaded with acquire by a read: a read that meets a word of a later element
/// sees, in its second load, that its own was removed before.
class shared_slot {
public:
    using word = std::uint64_t;

    static constexpr word live = word{1} << 31;
    static constexpr word guards = live - 1;

    static constexpr word of(std::size_t generation) noexcept { return word{generation} << 32; }
    static constexpr std::size_t generation(word s) noexcept { return s >> 32; }
    static constexpr bool is_live(word s, std::size_t generation) noexcept
    {
        return (s & ~guards) == (of(generation) | live);
    }

    /// One guard more, if the element is there.
    bool try_hold(std::size_t generation) noexcept
    {
        word s = state.load(std::memory_order_relaxed);
        while (is_live(s, generation))
            if (state.compare_exchange_weak(s, s + 1, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                return true;
        return false;
    }
    /// True: this was the last, and the slot is the caller's.
    bool let_go() noexcept
    {
        return (state.fetch_sub(1, std::memory_order_acq_rel) & (live | guards)) == 1;
    }

    enum class removal { refused, left_to_guards, alone };
    removal try_remove(std::size_t generation) noexcept
    {
        word s = state.load(std::memory_order_relaxed);
        while (is_live(s, generation))
            if (state.compare_exchange_weak(s, s & ~live, std::memory_order_acq_rel,
                                            std::memory_order_relaxed))
                return (s & guards) == 0 ? removal::alone : removal::left_to_guards;
        return removal::refused;
    }

    std::atomic<word> state;
    void* value; // written once, before the first element is live: a slot stays where it is
};

/// A source for a pool of `Stride` bytes a block: pages in one range, from which follows
/// the number of a block, and in another a `shared_slot` for each. What the pool keeps
/// beside its chunks uses up no numbers. One thread at a time, but for `at`.
template <std::size_t Stride, std::size_t SlotsMax, std::size_t BytesMax>
class shared_slots {
public:
    shared_slots() = default;
    shared_slots(const shared_slots&) = delete;
    shared_slots& operator=(const shared_slots&) = delete;

    chunk try_take(layout l) noexcept
    {
        if (!is_numbered(l.align))
            return beside_.try_take(l);
        if (base_ != nullptr)
            return take_covered(l);
        for (std::size_t bytes = bytes_max;; bytes /= 4) { // a quarter where all is refused
            values_ = os::page_source({.reserve_bytes = bytes});
            slots_ = os::growing_range((bytes / Stride + 2) * sizeof(shared_slot));
            chunk const taken = take_covered(l);
            if (taken.data != nullptr || bytes <= bytes_first)
                return taken;
        }
    }
    void give(chunk c) noexcept { (is_numbered(c.align) ? values_ : beside_).give(c); }

    /// Of a block; from 1 on.
    std::size_t number_of(const void* block) const noexcept
    {
        return static_cast<std::size_t>(static_cast<const std::byte*>(block) - base_) / Stride + 1;
    }
    /// Null: there is none of this number. Any thread.
    shared_slot* at(std::size_t number) const noexcept
    {
        return number < end_.load(std::memory_order_acquire) ? slots() + number : nullptr;
    }
    std::size_t end() const noexcept { return end_.load(std::memory_order_acquire); }
    std::size_t bytes() const noexcept { return slots_.bytes(); }

private:
    static constexpr std::size_t bytes_first = std::size_t{1} << 21;
    // Rounded down to pages, since a range is rounded up: no number is above SlotsMax.
    static constexpr std::size_t bytes_max =
        std::min(BytesMax, saturating_mul(SlotsMax, Stride)) / page_bytes * page_bytes;

    /// Chunks of blocks are aligned to their size, which is more than a page.
    static constexpr bool is_numbered(std::size_t align) noexcept { return align > page_bytes; }

    /// With slots for all blocks that may be in it.
    chunk take_covered(layout l) noexcept
    {
        chunk const taken = values_.try_take(l);
        if (taken.data == nullptr)
            return {};
        auto* const begin = static_cast<std::byte*>(taken.data);
        std::byte* const base = base_ == nullptr ? begin : base_; // the first take's is the range's
        std::size_t const end = static_cast<std::size_t>(begin + taken.bytes - base) / Stride + 2;
        if (!slots_.cover(end * sizeof(shared_slot), 1)) {
            values_.give(taken);
            return {};
        }
        if (base_ == nullptr) // else other threads may be reading it
            base_ = base;
        if (end > end_.load(std::memory_order_relaxed))
            end_.store(end, std::memory_order_release);
        return taken;
    }

    /// Pages are zero, and so is a slot that was never used.
    shared_slot* slots() const noexcept { return reinterpret_cast<shared_slot*>(slots_.begin()); }

    os::page_source values_{{}};
    os::page_source beside_{{}};
    os::growing_range slots_;
    std::byte* base_ = nullptr;
    std::atomic<std::size_t> end_ = 0;
};

} // namespace mallard
