// Large blocks, which are either spans of the slice heap or have a dedicated mapping.
#include "large.hpp"

#include "guests.hpp"
#include "limits.hpp"
#include "reservation.hpp"
#include "slice_heap.hpp"
#include "threads.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace mallard::engine {
namespace {

constexpr std::size_t span_bytes_max = std::size_t{32} << 20;
/// The largest number of blocks with a dedicated mapping. The system limits the number of mappings
/// in a process, usually to 65,530. Further large blocks of any size are spans, because all spans
/// of a reservation together are one mapping.
constexpr std::size_t mappings_max = 1024;

// --- mappings ----------------------------------------------------------------

struct mapping {
    std::byte* start = nullptr;
    std::size_t bytes = 0;
    bool dead = false; ///< freed, but not unmapped, because the system call failed
};

/// All mappings, in no particular order. A search checks each mapping. There are usually only a
/// few, so a search is cheap compared with the system calls that create and free a mapping.
/// Untouched pages of the array use no memory.
struct mapping_table {
    os::lock lock;
    std::size_t count = 0;
    std::size_t dead = 0;
    std::size_t next_try = 0; ///< where `unmap_some_dead` continues
    huge_usage usage;
    mapping all[2 * mappings_max] = {};

    bool is_full() const noexcept { return count == std::size(all); }

    /// Returns the mapping that begins at `start`, or null if there is no such mapping. Ignores
    /// dead mappings.
    mapping* find(const void* start) noexcept
    {
        for (mapping* m = all; m != all + count; ++m)
            if (m->start == start && !m->dead)
                return m;
        return nullptr;
    }

    void erase(mapping& m) noexcept { m = all[--count]; }

    /// Tries again to unmap dead mappings, which are freed but not unmapped, because the system
    /// call failed. Tries only two, so that no free is slow.
    void unmap_some_dead() noexcept
    {
        std::size_t tries = std::min<std::size_t>(dead, 2);
        for (std::size_t left = count; left != 0 && tries != 0; --left) {
            mapping& m = all[++next_try % count];
            if (!m.dead)
                continue;
            tries -= 1;
            if (os::unmap(m.start, m.bytes)) {
                dead -= 1;
                erase(m);
            }
        }
    }
};

constinit mapping_table mappings;

/// Maps pages at a multiple of `align`.
std::byte* map_aligned(std::size_t bytes, std::size_t align) noexcept
{
    if (align <= page_bytes)
        return os::map(bytes);
    std::byte* const at = bytes + align < bytes ? nullptr : os::map(bytes + align);
    if (at == nullptr)
        return nullptr;
    std::byte* const start = align_up(at, align);
    // Unmap the parts before and after the aligned range. If this fails, these parts stay mapped
    // and untouched.
    if (start != at)
        os::unmap(at, static_cast<std::size_t>(start - at));
    os::unmap(start + bytes, align - static_cast<std::size_t>(start - at));
    return start;
}

void* allocate_huge(std::size_t bytes, std::size_t align, bool& is_guest) noexcept
{
    std::size_t const whole = align_up(bytes + (bytes == 0), page_bytes);
    if (whole < bytes || !the_limits.try_charge(whole))
        return nullptr;
    std::byte* const start = map_aligned(whole, align);
    access const alone(mappings.lock);
    is_guest = start != nullptr && alone.is_guest();
    if (start == nullptr || is_guest || mappings.is_full()) {
        if (start != nullptr)
            os::unmap(start, whole);
        the_limits.uncharge(whole);
        return nullptr;
    }
    if (huge_pages.load(std::memory_order_relaxed))
        os::advise_huge(start, whole, true);
    mappings.all[mappings.count++] = {start, whole};
    mappings.usage.blocks += 1;
    mappings.usage.bytes += whole;
    mappings.usage.bytes_max = std::max(mappings.usage.bytes_max, mappings.usage.bytes);
    return start;
}

bool mappings_are_many() noexcept
{
    access const alone(mappings.lock);
    return mappings.count >= mappings_max;
}

bool free_huge(void* p) noexcept
{
    access const alone(mappings.lock);
    mapping* const m = mappings.find(p);
    if (m == nullptr)
        return false;
    the_limits.uncharge(m->bytes);
    mappings.usage.blocks -= 1;
    mappings.usage.bytes -= m->bytes;
    mappings.usage.bytes_returned += m->bytes;
    if (!alone.is_guest() && os::unmap(m->start, m->bytes)) {
        mappings.erase(*m);
    } else {
        os::purge(m->start, m->bytes);
        m->dead = true;
        mappings.dead += 1;
    }
    if (!alone.is_guest())
        mappings.unmap_some_dead();
    return true;
}

void* resize_huge(void* p, std::size_t bytes_new) noexcept
{
    std::size_t const whole = align_up(bytes_new, page_bytes);
    access const alone(mappings.lock);
    mapping* const m = mappings.find(p);
    if (m == nullptr || bytes_new <= span_bytes_max || whole < bytes_new || alone.is_guest())
        return nullptr;
    if (whole == m->bytes)
        return p;
    std::size_t const before = m->bytes;
    if (!the_limits.try_charge(whole)) // during the call, both the old and the new size count
        return nullptr;
    std::byte* const moved = os::remap(m->start, before, whole);
    the_limits.uncharge(moved == nullptr ? whole : before);
    if (moved == nullptr)
        return nullptr;
    *m = {moved, whole};
    mappings.usage.bytes += whole - before;
    mappings.usage.bytes_max = std::max(mappings.usage.bytes_max, mappings.usage.bytes);
    return moved;
}

// --- spans --------------------------------------------------------------------

/// Returns the record of the large block at `p` if that block is a span, or null if no such block
/// begins at `p`.
slab* large_at(const void* p) noexcept
{
    reservation* const r = reservation_of(p);
    if (r == nullptr)
        return nullptr;
    std::size_t const g = r->slice_of(p);
    return offset_in(r->entry_at(g)) == entry_large && r->address_of(g) == p ? r->slabs + g
                                                                             : nullptr;
}

void* resize_span(slab& s, std::size_t bytes_new) noexcept
{
    std::size_t const slices = slices_for(bytes_new);
    if (slices < slices_for(classed_bytes_max) || bytes_new > span_bytes_max)
        return nullptr;
    reservation& r = *reservation_of(s.start);
    std::size_t const g = r.slice_of(s.start);
    // If several threads free or resize the block at the same time, only one thread succeeds here.
    entry const e = r.entry_at(g);
    if (offset_in(e) != entry_large || !r.change(g, e, inside_of(e)))
        return nullptr;
    bool zero = false;
    bool good = true;
    if (slices < s.slices)
        the_slice_heap.give(r, g + slices, s.slices - slices);
    else if (slices > s.slices)
        good = the_slice_heap.extend(r, g, s.slices, slices - s.slices, zero);
    if (good && slices > s.slices)
        r.mark(g + s.slices, slices - s.slices, inside_of(e));
    if (good)
        s.slices = static_cast<std::uint32_t>(slices);
    r.mark(g, 1, e);
    return good ? s.start : nullptr;
}

} // namespace

slab* take_span_for_block(std::size_t bytes, std::size_t align, entry what, bool* zero) noexcept
{
    std::size_t const slices = slices_for(bytes + (bytes == 0));
    span const found = the_slice_heap.take(slices, std::max<std::size_t>(align / slice_bytes, 1));
    if (found.in == nullptr)
        return nullptr;
    slab& s = found.record();
    s.start = found.start();
    s.slices = static_cast<std::uint32_t>(slices);
    s.back = 0;
    found.in->mark(found.slice, 1, what);
    if (bytes <= span_bytes_max) // for larger spans, this would touch many pages of the map
        found.in->mark(found.slice + 1, slices - 1, entry_inside);
    if (zero != nullptr)
        *zero = found.zero;
    return &s;
}

void* take_large(std::size_t bytes, std::size_t align, bool* zero) noexcept
{
    return retry_after_flush([=]() -> void* {
        if (align <= span_bytes_max && (bytes <= span_bytes_max || mappings_are_many()))
            if (slab* const s = take_span_for_block(bytes, align, entry_large, zero))
                return s->start;
        // If no reservation has room for a span, a dedicated mapping may still fit.
        bool is_guest = false;
        if (void* const block = allocate_huge(bytes, align, is_guest)) {
            if (zero != nullptr)
                *zero = true;
            return block;
        }
        // In two cases, the block must be a span, whatever its size. First, while another thread
        // forks, this thread must not change the mapping table. Second, the system may have no
        // address space for a mapping, because the reservations use all that a limit allows. Then
        // the committed free slices may be enough.
        usage const now = the_slice_heap.now();
        std::size_t const wide = slices_for(bytes) + align / slice_bytes;
        slab* const s = is_guest || wide <= now.committed - now.used
                            ? take_span_for_block(bytes, align, entry_large, zero)
                            : nullptr;
        return s == nullptr ? nullptr : s->start;
    });
}

std::size_t large_bytes(const void* p) noexcept
{
    if (slab const* const s = large_at(p))
        return s->slices * slice_bytes;
    access const alone(mappings.lock);
    mapping const* const m = mappings.find(p);
    return m == nullptr ? 0 : m->bytes;
}

bool free_large(void* p) noexcept
{
    slab* const s = large_at(p);
    if (s == nullptr)
        return free_huge(p);
    reservation& r = *reservation_of(p);
    std::size_t const g = r.slice_of(p);
    // If two threads free the block at the same time, only one thread succeeds here.
    if (!r.change(g, entry_large, 0))
        return false;
    // Return the memory of a span above 32 MiB to the system immediately, because the span alone
    // would exceed the usual maximum of idle memory.
    std::size_t const bytes = s->slices * slice_bytes;
    the_slice_heap.give(r, g, s->slices, bytes > span_bytes_max && os::purge(s->start, bytes));
    return true;
}

void* resize_large(void* p, std::size_t bytes_new) noexcept
{
    slab* const s = large_at(p);
    return s != nullptr ? resize_span(*s, bytes_new) : resize_huge(p, bytes_new);
}

void move_contents(void* to, void* from, std::size_t bytes, bool zero) noexcept
{
    if (bytes <= classed_bytes_max) {
        std::memcpy(to, from, bytes);
        return;
    }
    // Limit the number of moves between spans, because each splits mappings, and the system limits
    // the number of mappings.
    constexpr std::size_t moves_max = 8192;
    constinit static std::atomic<std::size_t> moves{0};
    auto* const target = static_cast<std::byte*>(to);
    auto* const source = static_cast<std::byte*>(from);
    if (bytes > span_bytes_max) {
        if (large_at(to) != nullptr && large_at(from) != nullptr &&
            os::add(moves, 1) <= moves_max &&
            os::move_pages(source, target, align_up(bytes, page_bytes)))
            return;
        zero = zero || os::purge(target, bytes);
    }
    for (std::size_t at = 0; at < bytes; at += page_bytes) {
        std::size_t const part = std::min(page_bytes, bytes - at);
        bool const is_zero =
            source[at] == std::byte{} && std::memcmp(source + at, source + at + 1, part - 1) == 0;
        if (!zero || !is_zero)
            std::memcpy(target + at, source + at, part);
    }
}

huge_usage huge_now() noexcept
{
    access const alone(mappings.lock);
    return mappings.usage;
}

os::lock& lock_of_huge() noexcept
{
    return mappings.lock;
}

} // namespace mallard::engine
