// Where blocks are, and whose: windows of address space, a word for each granule of
// them, and a record for each slab.
//
//   | records ... | map ... | groups ... | granule 0 | granule 1 | ... granules ... room |
//
// A window has room for half a TiB, but takes address space only as it needs it: each of the four
// parts is mapped from its start, and grows in place, where usually no other mapping is. So a limit
// of address space counts only what is in use, whenever the program sets that limit. If another
// mapping is in the way, the engine opens another window.
#pragma once

#include "classes.hpp"

#include "../os/system.hpp"

namespace mallard::engine {

struct front;

/// What a granule is part of: { number of the owner : 21 | code : 11 }.
///
///     0                   nothing: free, or never used
///     owner, a class      a slab of that front, or one of its runs
///     0, large            the first granule of a block of its own
///     0, sampled          the same, of one that somebody was told of (see sample.hpp)
///     0, inside           another granule of a run, a large or a sampled block
///
/// Where the owner is a heap (see heap.hpp), it stands with `large` and `inside` too, and
/// with `unused` in granules that the heap has and nothing is in.
///
/// So one comparison says "mine, and of this class": an entry with the own number taken
/// away is a code, all others are more. Writers hold what they describe; readers who
/// hold a block of it know that it does not change, others find out that they erred.
using entry = std::uint32_t;

inline constexpr unsigned owner_shift = 11;
inline constexpr entry owner_max = (entry{1} << (32 - owner_shift)) - 1;
/// Of fronts that are none: a number that no entry carries.
inline constexpr entry tag_of_none = owner_max << owner_shift;
/// Numbers of heaps have the highest bit, those of threads' fronts have not.
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
constexpr code code_of(entry e) noexcept
{
    return e & (code_end - 1);
}
/// The entry of a granule of a slab or a run; `tag` is the owner's.
constexpr entry entry_of(entry tag, code c) noexcept
{
    return tag | static_cast<entry>(c);
}
constexpr bool is_heaps(entry e) noexcept
{
    return (e & heap_bit) != 0;
}
/// Of the later granules of what the entry, or the tag of its owner, is for.
constexpr entry inside_of(entry e) noexcept
{
    return (is_heaps(e) ? e & ~entry{code_end - 1} : 0) | entry_inside;
}
constexpr bool is_class(entry e) noexcept
{
    return code_of(e) - code_of_class(0) < class_count * code_unit;
}

/// A slab, a run or a large block. Those of free granules mean nothing.
///
/// For a slab, with |x| for the blocks in x:
///     carved == used + |free|     used: with callers, in lists of fronts, or on the way
struct alignas(64) slab {
    std::atomic<front*> owner{nullptr};
    std::byte* start = nullptr;
    void* free = nullptr; ///< linked as the lists of a front are
    std::uint32_t used = 0;
    std::uint32_t carved = 0; ///< the blocks after these were never given out
    std::uint32_t granules = 0;
    std::uint32_t back = 0; ///< in a later granule of a slab: so many before it is the first
    slab* next = nullptr;   ///< of those with free blocks that the owner has of this class
    slab* previous = nullptr;
    std::uint8_t index = 0; ///< of the class
    bool listed = false;
    std::uint16_t chunk_granules = 0; ///< of the chunk of a heap that begins here, slab or not
    std::uint32_t chunk_next = 0;

    std::size_t usable_bytes() const noexcept
    {
        return index >= run_class_first ? granules * granule_bytes : shape().bytes;
    }
    const class_shape& shape() const noexcept { return shapes[index]; }
    std::size_t offset_of(const void* p) const noexcept
    {
        return static_cast<std::size_t>(static_cast<const std::byte*>(p) - start);
    }
};
static_assert(sizeof(slab) == 64);

/// Of 64 granules. Free ones are dirty when they were used since they were last zero,
/// aged when they were dirty an epoch ago already.
struct group {
    std::uint64_t used = 0;
    std::uint64_t dirty = 0;
    std::uint64_t aged = 0;
    std::uint64_t spare = 0;
};

/// `base` and the arrays are written once, before any thread has a block of the window. A thread
/// that has a block got its address after that write, and sees `granules` large enough for it.
struct window {
    std::uintptr_t base = 0;
    std::atomic<std::size_t> granules{0}; ///< that are committed: up to the frontier
    std::atomic<entry>* map = nullptr;
    slab* slabs = nullptr;
    // The lock of central protects these, and changes of `granules`:
    group* groups = nullptr;
    std::size_t room = 0;        ///< most granules it can have; 0: there is no such window
    std::size_t step = 0;        ///< granules by which the frontier moves next
    std::size_t mapped[3] = {};  ///< bytes of the records, the map and the groups
    std::size_t kept = 0;        ///< granules when a fork began; see fork.hpp
    bool is_reserved = false;    ///< the address space is taken: see window.cpp
    std::size_t first_free = 0;  ///< no group before this one has a free granule
    std::size_t first_dirty = 0; ///< nor one before this one a dirty one

    std::size_t frontier() const noexcept { return granules.load(std::memory_order_relaxed); }

    /// The granule of an address; at least `granules` if it has none.
    std::size_t granule_of(const void* p) const noexcept
    {
        return (reinterpret_cast<std::uintptr_t>(p) - base) / granule_bytes;
    }
    bool has(std::size_t granule) const noexcept { return os::is_below(granule, granules); }
    std::byte* address_of(std::size_t granule) const noexcept
    {
        return reinterpret_cast<std::byte*>(base + granule * granule_bytes);
    }
    entry entry_at(std::size_t granule) const noexcept
    {
        return map[granule].load(std::memory_order_relaxed);
    }
    void mark(std::size_t granule, std::size_t count, entry e) noexcept
    {
        for (std::size_t i = 0; i < count; ++i)
            map[granule + i].store(e, std::memory_order_relaxed);
    }
    /// Sets entries to 0; does not write entries that are 0 already, so untouched memory stays so.
    void unmark(std::size_t granule, std::size_t count) noexcept
    {
        for (std::size_t i = 0; i < count; ++i)
            if (entry_at(granule + i) != 0)
                map[granule + i].store(0, std::memory_order_relaxed);
    }
    /// One of those who try it at once succeeds.
    bool change(std::size_t granule, entry from, entry to) noexcept
    {
        return map[granule].compare_exchange_strong(from, to, std::memory_order_relaxed);
    }
    /// Of a block in a slab, or the begin of a run.
    slab& slab_at(std::size_t granule) const noexcept
    {
        slab* const s = slabs + granule;
        return *(s - s->back);
    }
};

inline constexpr std::size_t windows_max = 64;
inline constexpr std::size_t window_granules_max = (std::size_t{1} << 39) / granule_bytes;

/// Almost all blocks are in the first window. Before it has memory, no address is inside. Hidden
/// visibility, so that `free` reads its fields without loading its address from the GOT first.
[[gnu::visibility("hidden")]] extern constinit window windows[windows_max];
extern constinit std::atomic<std::size_t> windows_used;

/// The window of an address; null: none.
inline window* window_of(const void* p) noexcept
{
    if (windows[0].has(windows[0].granule_of(p))) [[likely]]
        return windows;
    window* const end = windows + windows_used.load(std::memory_order_acquire);
    for (window* w = windows; w != end; ++w)
        if (w->has(w->granule_of(p)))
            return w;
    return nullptr;
}

/// The slab of a block that is certainly one.
inline slab& slab_of(const void* block) noexcept
{
    std::size_t const g = windows[0].granule_of(block);
    if (windows[0].has(g)) [[likely]]
        return windows[0].slab_at(g);
    window const& w = *window_of(block);
    return w.slab_at(w.granule_of(block));
}

} // namespace mallard::engine
