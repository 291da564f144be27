// Reservations: the address space that contains slabs, spans and their records. A reservation has
// four arrays. The start of each array is mapped, and the mapped part grows in place:
//
//   | slab records ... | map entries ... | slice bits ... | slice 0 | slice 1 | ... room |
//
// Each slice has a slab record, and a map entry that describes what the slice is part of. A
// reservation usually has room for 2^39 bytes, but maps only the address space that it needs, so a
// limit on address space (`ulimit -v`) counts only what is in use. If another mapping prevents the
// growth, the engine opens another reservation.
#pragma once

#include "slab.hpp"

#include "../os/memory.hpp"
#include "../os/processor.hpp"
#include "../os/system.hpp"

namespace mallard::engine {

/// The state of 64 slices, one bit each. A free slice is dirty if it was used and not returned to
/// the system since, so its bytes need not be zero. A dirty slice is aged if it was already dirty
/// when this decay interval began. `guest` marks the slices that other threads allocated while a
/// thread forked (see guests.hpp). These slices are added to `used` after the fork.
struct slice_group {
    std::uint64_t used = 0;
    std::uint64_t dirty = 0;
    std::uint64_t aged = 0;
    std::uint64_t guest = 0;
};

/// A reservation. `base` and the array pointers are written once, before any thread has a block of
/// the reservation. `slices` is written before a block is allocated beyond its old value. A thread
/// that has a block received the block's address after these writes, so the thread sees the written
/// values.
struct reservation {
    std::uintptr_t base = 0;
    std::atomic<std::size_t> slices{0}; ///< number of mapped slices (the commit limit)
    std::atomic<entry>* map = nullptr;
    slab* slabs = nullptr;
    // The lock of the slice heap protects the members below, and changes of `slices`:
    slice_group* groups = nullptr;
    std::size_t room = 0;        ///< largest possible number of slices; 0 if unused
    std::size_t step = 0;        ///< slices by which the commit limit rises next
    std::size_t mapped[3] = {};  ///< mapped bytes of records, map and bits
    bool is_reserved = false;    ///< whether all its address space is reserved (reservation.cpp)
    std::size_t first_free = 0;  ///< index of a group; earlier groups have no free slice
    std::size_t first_dirty = 0; ///< index of a group; earlier groups have no dirty slice

    std::size_t commit_limit() const noexcept { return slices.load(std::memory_order_relaxed); }

    /// Returns the index of the slice that contains an address. If the address is not in this
    /// reservation, the result is at least `slices`.
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
    /// Sets entries to 0. Does not write entries that are 0 already, so that untouched pages of the
    /// map stay untouched.
    void unmark(std::size_t slice, std::size_t count) noexcept
    {
        for (std::size_t i = 0; i < count; ++i)
            if (entry_at(slice + i) != 0)
                map[slice + i].store(0, std::memory_order_relaxed);
    }
    /// Replaces the entry `from` by the entry `to`, and returns whether the entry was `from`. If
    /// several threads try this at the same time, only one thread succeeds.
    bool change(std::size_t slice, entry from, entry to) noexcept
    {
        return map[slice].compare_exchange_strong(from, to, std::memory_order_relaxed);
    }
    /// Returns the record of the slab that the slice is part of, or of the span that begins there.
    slab& slab_at(std::size_t slice) const noexcept
    {
        slab* const s = slabs + slice;
        return *(s - s->back);
    }
};

inline constexpr std::size_t reservations_max = 64;
inline constexpr std::size_t reservation_slices_max = (std::size_t{1} << 39) / slice_bytes;

/// All reservations. Almost all blocks are in the first reservation. Before that reservation has
/// memory, it contains no address. Hidden visibility lets `free` read this array without a load
/// from the GOT.
[[gnu::visibility("hidden")]] extern constinit reservation reservations[reservations_max];
extern constinit std::atomic<std::size_t> reservations_used;

/// Returns the reservation that contains an address, or null if there is no such reservation.
inline reservation* reservation_of(const void* p) noexcept
{
    if (reservations[0].has(reservations[0].slice_of(p))) [[likely]]
        return reservations;
    reservation* const end = reservations + reservations_used.load(std::memory_order_acquire);
    for (reservation* r = reservations; r != end; ++r)
        if (r->has(r->slice_of(p)))
            return r;
    return nullptr;
}

/// Returns the slab record of a block. `block` must be in a reservation, and must not have a
/// dedicated mapping.
inline slab& slab_of(const void* block) noexcept
{
    std::size_t const slice = reservations[0].slice_of(block);
    if (reservations[0].has(slice)) [[likely]]
        return reservations[0].slab_at(slice);
    reservation const& r = *reservation_of(block);
    return r.slab_at(r.slice_of(block));
}

/// Sets the tag of the trap caches (see thread_cache.hpp) to a value that no map entry has. Called
/// once, before the first entry is written. (With a tag as initial value, each trap cache would
/// need 4 KiB in the file of the library.) Defined in thread_cache.cpp.
void tag_decoy_caches() noexcept;

// The two functions below require the lock of the slice heap.

/// Raises the commit limit by at least `at_least` slices and adds the number of new slices to
/// `committed`. Returns `blocked` if the reservation has too little room, or if another mapping is
/// in the way, which lowers `room`.
os::growth raise_commit_limit(reservation& r, std::size_t at_least,
                              std::size_t& committed) noexcept;

/// Opens a reservation and commits at least `at_least` slices. Returns `refused` if there is no
/// memory, or no address space for a reservation.
os::growth add_reservation(std::size_t at_least, std::size_t& committed) noexcept;

/// Whether the engine requests huge pages from the system for memory that it commits from now on
/// (MALLARD_HUGEPAGES).
extern constinit std::atomic<bool> huge_pages;

} // namespace mallard::engine
