// Where blocks are, and whose: reservations of address space, a word for each slice of
// them, and a record for each slab.
//
//   | records ... | map ... | groups ... | slice 0 | slice 1 | ... slices ... room |
//
// A reservation has room for half a TiB, but takes address space only as it needs it: each of the
// four parts is mapped from its start, and grows in place, where usually no other mapping is. So a
// limit of address space counts only what is in use, whenever the program sets that limit. If
// another mapping is in the way, the engine opens another reservation.
#pragma once

#include "classes.hpp"

#include "../os/system.hpp"

namespace mallard::engine {

struct thread_cache;

/// What a slice is part of: { number of the owner : 21 | class offset : 11 }.
///
///     0                   nothing: free, or never used
///     owner, a class      a slab of that thread cache, or one of its spans
///     0, large            the first slice of a block of its own
///     0, sampled          the same, of one that somebody was told of (see sample.hpp)
///     0, inside           another slice of a span, a large or a sampled block
///
/// Where the owner is a heap (see heap.hpp), it stands with `large` and `inside` too, and
/// with `unused` in slices that the heap has and nothing is in.
///
/// So one comparison says "mine, and of this class": an entry with the own number taken
/// away is a class offset, all others are more. Writers hold what they describe; readers who
/// hold a block of it know that it does not change, others find out that they erred.
using entry = std::uint32_t;

inline constexpr unsigned owner_shift = 11;
inline constexpr entry owner_max = (entry{1} << (32 - owner_shift)) - 1;
/// Of thread caches that are none: a number that no entry carries.
inline constexpr entry decoy_tag = owner_max << owner_shift;
/// Numbers of heaps have the highest bit, those of threads' thread caches have not.
inline constexpr entry heap_bit = entry{1} << 31;
inline constexpr entry thread_owner_max = owner_max / 2;
inline constexpr entry entry_sampled = 0x7c0;
inline constexpr entry entry_unused = 0x7d0;
inline constexpr entry entry_inside = 0x7e0;
inline constexpr entry entry_large = 0x7f0;

constexpr entry owner_of(entry e) noexcept
{
    return e >> owner_shift;
}
constexpr class_offset offset_in(entry e) noexcept
{
    return e & (class_offset_end - 1);
}
/// The entry of a slice of a slab or a span; `tag` is the owner's.
constexpr entry entry_of(entry tag, class_offset offset) noexcept
{
    return tag | static_cast<entry>(offset);
}
constexpr bool is_heaps(entry e) noexcept
{
    return (e & heap_bit) != 0;
}
/// Of the later slices of what the entry, or the tag of its owner, is for.
constexpr entry inside_of(entry e) noexcept
{
    return (is_heaps(e) ? e & ~entry{class_offset_end - 1} : 0) | entry_inside;
}
constexpr bool is_class(entry e) noexcept
{
    return offset_in(e) - offset_of_class(0) < class_count * class_offset_unit;
}

/// A slab, a span or a large block. Those of free slices mean nothing.
///
/// For a slab, with |x| for the blocks in x:
///     carved == used + |free|     used: with callers, in lists of thread caches, or on the way
struct alignas(64) slab {
    std::atomic<thread_cache*> owner{nullptr};
    std::byte* start = nullptr;
    void* free = nullptr; ///< linked as the lists of a thread cache are
    std::uint32_t used = 0;
    std::uint32_t carved = 0; ///< the blocks after these were never given out
    std::uint32_t slices = 0;
    std::uint32_t back = 0; ///< in a later slice of a slab: so many before it is the first
    slab* next = nullptr;   ///< of those with free blocks that the owner has of this class
    slab* previous = nullptr;
    std::uint8_t index = 0; ///< of the class
    bool listed = false;
    std::uint16_t chunk_slices = 0; ///< of the chunk of a heap that begins here, slab or not
    std::uint32_t chunk_next = 0;

    std::size_t usable_bytes() const noexcept
    {
        return index >= span_class_first ? slices * slice_bytes : shape().bytes;
    }
    const class_shape& shape() const noexcept { return shapes[index]; }
    std::size_t offset_of(const void* p) const noexcept
    {
        return static_cast<std::size_t>(static_cast<const std::byte*>(p) - start);
    }
};
static_assert(sizeof(slab) == 64);

/// Of 64 slices. Free ones are dirty when they were used since they were last zero,
/// aged when they were dirty a decay interval ago already.
struct group {
    std::uint64_t used = 0;
    std::uint64_t dirty = 0;
    std::uint64_t aged = 0;
    std::uint64_t spare = 0;
};

/// `base` and the arrays are written once, before any thread has a block of the reservation. A
/// thread that has a block got its address after that write, and sees `slices` large enough for it.
struct reservation {
    std::uintptr_t base = 0;
    std::atomic<std::size_t> slices{0}; ///< that are committed: up to the commit limit
    std::atomic<entry>* map = nullptr;
    slab* slabs = nullptr;
    // The lock of the slice heap protects these, and changes of `slices`:
    group* groups = nullptr;
    std::size_t room = 0;        ///< most slices it can have; 0: there is no such reservation
    std::size_t step = 0;        ///< slices by which the commit limit moves next
    std::size_t mapped[3] = {};  ///< bytes of the records, the map and the groups
    std::size_t kept = 0;        ///< slices when a fork began; see fork.hpp
    bool is_reserved = false;    ///< the address space is taken: see reservation.cpp
    std::size_t first_free = 0;  ///< no group before this one has a free slice
    std::size_t first_dirty = 0; ///< nor one before this one a dirty one

    std::size_t commit_limit() const noexcept { return slices.load(std::memory_order_relaxed); }

    /// The slice of an address; at least `slices` if it has none.
    std::size_t slice_of(const void* p) const noexcept
    {
        return (reinterpret_cast<std::uintptr_t>(p) - base) / slice_bytes;
    }
    bool has(std::size_t slice) const noexcept { return os::is_below(slice, slices); }
    std::byte* address_of(std::size_t slice) const noexcept
    {
        return reinterpret_cast<std::byte*>(base + slice * slice_bytes);
    }
    entry entry_at(std::size_t slice) const noexcept
    {
        return map[slice].load(std::memory_order_relaxed);
    }
    void mark(std::size_t slice, std::size_t count, entry e) noexcept
    {
        for (std::size_t i = 0; i < count; ++i)
            map[slice + i].store(e, std::memory_order_relaxed);
    }
    /// Sets entries to 0; does not write entries that are 0 already, so untouched memory stays so.
    void unmark(std::size_t slice, std::size_t count) noexcept
    {
        for (std::size_t i = 0; i < count; ++i)
            if (entry_at(slice + i) != 0)
                map[slice + i].store(0, std::memory_order_relaxed);
    }
    /// One of those who try it at once succeeds.
    bool change(std::size_t slice, entry from, entry to) noexcept
    {
        return map[slice].compare_exchange_strong(from, to, std::memory_order_relaxed);
    }
    /// Of a block in a slab, or the begin of a span.
    slab& slab_at(std::size_t slice) const noexcept
    {
        slab* const s = slabs + slice;
        return *(s - s->back);
    }
};

inline constexpr std::size_t reservations_max = 64;
inline constexpr std::size_t reservation_slices_max = (std::size_t{1} << 39) / slice_bytes;

/// Almost all blocks are in the first reservation. Before it has memory, no address is inside.
/// Hidden visibility, so that `free` reads its fields without loading its address from the GOT
/// first.
[[gnu::visibility("hidden")]] extern constinit reservation reservations[reservations_max];
extern constinit std::atomic<std::size_t> reservations_used;

/// The reservation of an address; null: none.
inline reservation* reservation_of(const void* p) noexcept
{
    if (reservations[0].has(reservations[0].slice_of(p))) [[likely]]
        return reservations;
    reservation* const end = reservations + reservations_used.load(std::memory_order_acquire);
    for (reservation* w = reservations; w != end; ++w)
        if (w->has(w->slice_of(p)))
            return w;
    return nullptr;
}

/// The slab of a block that is certainly one.
inline slab& slab_of(const void* block) noexcept
{
    std::size_t const g = reservations[0].slice_of(block);
    if (reservations[0].has(g)) [[likely]]
        return reservations[0].slab_at(g);
    reservation const& w = *reservation_of(block);
    return w.slab_at(w.slice_of(block));
}

} // namespace mallard::engine
