// The chunks of a pool by number, and a link for each slot, in 32 bits.
#pragma once

#include <mallard/detail/pool/chunk_geometry.hpp>

#include <atomic>

namespace mallard {

/// Of a slot: the number of its chunk, then its own there.
using slot_number = std::uint32_t;

/// Behind the bitmaps of a chunk: its number, then the links of its slots.
inline constexpr header_shape numbered_header{0, 2 * sizeof(slot_number), sizeof(slot_number)};

/// Grows by one thread at a time, while others look numbers up. A larger table
/// replaces one that is full; who still reads the old one finds in it all that
/// a number may mean that it has.
template <class Geometry>
class numbered_chunks {
    struct table {
        chunk taken;
        table* older;
        std::size_t capacity;

        pool_chunk** chunks() noexcept { return reinterpret_cast<pool_chunk**>(this + 1); }

        static constexpr std::size_t bytes(std::size_t capacity) noexcept
        {
            return sizeof(table) + capacity * sizeof(pool_chunk*);
        }
    };
    static constexpr std::size_t capacity_first = 16;

public:
    using place = typename Geometry::place;
    static constexpr std::size_t first_table_bytes = table::bytes(capacity_first);

    constexpr explicit numbered_chunks(const Geometry& cut) noexcept
        : slot_bits_(static_cast<int>(std::bit_width(cut.slots_max() - 1)))
    {
    }

    /// Makes sure that one more chunk can be entered; false, or throws what the
    /// source throws, when memory or numbers are used up.
    template <bool Throws, class Source, class Growth>
    bool has_room(Source& source, Growth& growth) noexcept(!Throws)
    {
        if (count_ == std::numeric_limits<slot_number>::max() >> slot_bits_)
            return false;
        table* const old = newest_.load(std::memory_order_relaxed);
        std::size_t const capacity = old == nullptr ? 0 : old->capacity;
        if (count_ < capacity)
            return true;
        std::size_t const larger = std::max(capacity * 2, capacity_first);
        layout const wanted(table::bytes(larger), alignof(table));
        chunk const taken =
            growth.admits(wanted.bytes) ? take_or_null<Throws>(source, wanted) : chunk{};
        if (taken.data == nullptr)
            return false;
        growth.took_aside(taken.bytes);
        auto* const fresh = ::new (taken.data) table{taken, old, larger};
        if (old != nullptr)
            std::copy_n(old->chunks(), count_, fresh->chunks());
        newest_.store(fresh, std::memory_order_release);
        return true;
    }

    /// Gives a chunk the next number. There is room.
    void enter(const Geometry& cut, pool_chunk* c) noexcept
    {
        if (links_at_ == 0)
            links_at_ = cut.behind_maps(c) + numbered_header.bytes;
        *number_of(c) = static_cast<slot_number>(count_);
        newest_.load(std::memory_order_relaxed)->chunks()[count_++] = c;
    }

    [[gnu::always_inline]] place place_of(slot_number n) const noexcept
    {
        return {newest_.load(std::memory_order_acquire)->chunks()[n >> slot_bits_],
                n & ((slot_number{1} << slot_bits_) - 1)};
    }
    slot_number number_of(place p) const noexcept
    {
        return *number_of(p.c) << slot_bits_ | static_cast<slot_number>(p.slot);
    }
    std::atomic<slot_number>& link_of(place p) const noexcept
    {
        auto* const links = reinterpret_cast<std::byte*>(p.c) + links_at_;
        return reinterpret_cast<std::atomic<slot_number>*>(links)[p.slot];
    }

    // --- while nobody looks

    /// No chunk has a number.
    void begin_anew() noexcept { count_ = 0; }

    void forget() noexcept
    {
        count_ = links_at_ = 0;
        newest_.store(nullptr, std::memory_order_relaxed);
    }

    /// Gives all tables back, and says how many bytes they were.
    template <class Source>
    std::size_t release(Source& source) noexcept
    {
        std::size_t bytes = 0;
        for (table* t = newest_.load(std::memory_order_relaxed); t != nullptr;) {
            chunk const taken = t->taken;
            t = t->older;
            bytes += taken.bytes;
            give(source, taken);
        }
        forget();
        return bytes;
    }

private:
    slot_number* number_of(pool_chunk* c) const noexcept
    {
        return reinterpret_cast<slot_number*>(reinterpret_cast<std::byte*>(c) + links_at_ -
                                              numbered_header.bytes);
    }

    int slot_bits_;
    std::size_t count_ = 0;
    std::size_t links_at_ = 0; // in the header: the same in all chunks
    std::atomic<table*> newest_{nullptr};
};

} // namespace mallard
