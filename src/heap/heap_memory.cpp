// Manages the memory of a heap, which consists of chunks from the slice heap, free spans inside the
// chunks, and large blocks. Also manages the limit of the heap.
#include "heap.hpp"
#include "large.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mallard::engine {
namespace {

/// Counts bytes against the heap's limit. If the limit would be exceeded, changes nothing and
/// returns false.
bool charge(heap& h, std::size_t bytes) noexcept
{
    if (!h.limit.try_charge(bytes))
        return false;
    std::size_t const now = h.limit.held();
    std::size_t most = h.held_max.load(std::memory_order_relaxed);
    while (most < now && !h.held_max.compare_exchange_weak(most, now, std::memory_order_relaxed)) {}
    return true;
}

// --- free spans of a heap -----------------------------------------------------

/// Returns the index of the bin for free spans of this length. There is a bin for each length below
/// 8, then one for each power of two.
std::size_t bin_of(std::size_t slices) noexcept
{
    return slices < 8 ? slices : static_cast<std::size_t>(std::bit_width(slices)) + 4;
}
static_assert(chunk_slices_max == 256); // the last bin, number 13, is for this length

/// Adds a free span to its bin. The record of the span's last slice points back to its first slice.
void put(heap& h, reservation& r, std::size_t slice, std::size_t slices) noexcept
{
    slab& s = r.slabs[slice];
    s.start = r.address_of(slice);
    s.slices = static_cast<std::uint32_t>(slices);
    s.back = 0;
    r.slabs[slice + slices - 1].back = s.slices - 1;
    slab*& bin = h.bins[bin_of(slices)];
    h.bins_used |= 1u << bin_of(slices);
    s.previous = nullptr;
    s.next = std::exchange(bin, &s);
    if (s.next != nullptr)
        s.next->previous = &s;
}

void take_out(heap& h, slab& s) noexcept
{
    std::size_t const bin = bin_of(s.slices);
    (s.previous != nullptr ? s.previous->next : h.bins[bin]) = s.next;
    if (s.next != nullptr)
        s.next->previous = s.previous;
    if (h.bins[bin] == nullptr)
        h.bins_used &= ~(1u << bin);
}

/// Returns a free span that is long enough, from the first bin that has such a span, or null if no
/// bin has one.
slab* find_free(const heap& h, std::size_t slices) noexcept
{
    std::size_t const least = bin_of(slices);
    for (std::uint32_t left = h.bins_used >> least << least; left != 0; left &= left - 1)
        for (slab* s = h.bins[std::countr_zero(left)]; s != nullptr; s = s->next)
            if (s->slices >= slices)
                return s;
    return nullptr;
}

void forget_free(heap& h) noexcept
{
    std::fill(std::begin(h.bins), std::end(h.bins), nullptr);
    h.bins_used = 0;
}

// --- chunks ------------------------------------------------------------------

constexpr unsigned slice_bits = 26;
static_assert(reservation_slices_max <= std::size_t{1} << slice_bits);

/// Returns the number that identifies a chunk. One word contains both the index of the chunk's
/// reservation and the index of the chunk's first slice.
std::uint32_t name_of(const reservation& r, std::size_t slice) noexcept
{
    return static_cast<std::uint32_t>(static_cast<std::size_t>(&r - reservations) << slice_bits |
                                      slice);
}

struct chunk {
    reservation* in;
    std::size_t slice;

    explicit chunk(std::uint32_t name) noexcept
        : in(reservations + (name >> slice_bits)),
          slice(name & ((std::uint32_t{1} << slice_bits) - 1))
    {
    }
    slab& record() const noexcept { return in->slabs[slice]; }
    std::size_t slices() const noexcept { return record().chunk_slices; }
};

void give(heap& h, chunk c) noexcept
{
    std::size_t const slices = std::exchange(c.record().chunk_slices, std::uint16_t{0});
    the_slice_heap.give(*c.in, c.slice, slices);
    h.limit.uncharge(slices * slice_bytes);
}

/// Calls `f(chunk)` for each chunk; `f` may free the chunk.
template <class F>
void for_each_chunk(const heap& h, F f) noexcept
{
    for (std::uint32_t name = h.chunks; name != no_chunk;) {
        chunk const c(name);
        name = c.record().chunk_next;
        f(c);
    }
}

/// Allocates one more chunk with at least `least` slices. Requests `h.step` slices first, and fewer
/// if the slice heap cannot supply that many.
bool grow(heap& h, std::size_t least) noexcept
{
    std::size_t const room = std::max(h.limit.left() / slice_bytes, least);
    for (std::size_t want = std::min(std::max<std::size_t>(h.step, least), room);;
         want = std::max(want / 2, least)) {
        if (!charge(h, want * slice_bytes))
            return false;
        if (span const found = the_slice_heap.take(want); found.in != nullptr) {
            found.record().chunk_slices = static_cast<std::uint16_t>(want);
            found.record().chunk_next = std::exchange(h.chunks, name_of(*found.in, found.slice));
            found.in->mark(found.slice, want, h.tag | entry_unused);
            put(h, *found.in, found.slice, want);
            h.step = std::min(2 * h.step, chunk_slices_max);
            return true;
        }
        h.limit.uncharge(want * slice_bytes);
        if (want == least)
            return false;
    }
}

} // namespace

span take_of(heap& h, std::size_t slices) noexcept
{
    slab* s = find_free(h, slices);
    if (s == nullptr && grow(h, slices))
        s = find_free(h, slices);
    if (s == nullptr)
        return {};
    reservation& r = *reservation_of(s->start);
    std::size_t const first = r.slice_of(s->start);
    std::size_t const left = s->slices - slices;
    // Take the slices from the end of the free span, so that the rest retains its record, and
    // usually its bin.
    if (left != 0 && bin_of(left) == bin_of(s->slices)) {
        s->slices = static_cast<std::uint32_t>(left);
        r.slabs[first + left - 1].back = s->slices - 1;
    } else {
        take_out(h, *s);
        if (left != 0)
            put(h, r, first, left);
    }
    return {&r, first + left, false};
}

void give_to(heap& h, slab& s) noexcept
{
    reservation& r = *reservation_of(s.start);
    entry const unused = h.tag | entry_unused;
    std::size_t first = r.slice_of(s.start);
    std::size_t end = first + s.slices;
    r.mark(first, s.slices, unused);
    if (r.has(end) && r.entry_at(end) == unused && r.slabs[end].chunk_slices == 0) {
        slab& after = r.slabs[end];
        take_out(h, after);
        end += after.slices;
    }
    if (s.chunk_slices == 0 && r.entry_at(first - 1) == unused) {
        slab& before = r.slab_at(first - 1);
        take_out(h, before);
        first -= before.slices;
    }
    put(h, r, first, end - first);
}

void free_chunks(heap& h) noexcept
{
    forget_free(h);
    for_each_chunk(h, [&](chunk c) { give(h, c); });
    h.chunks = no_chunk;
    h.step = chunk_slices_first;
}

void empty_chunks(heap& h) noexcept
{
    forget_free(h);
    for_each_chunk(h, [&](chunk c) {
        c.in->mark(c.slice, c.slices(), h.tag | entry_unused);
        put(h, *c.in, c.slice, c.slices());
    });
}

void trim_chunks(heap& h, std::size_t keep) noexcept
{
    std::uint32_t* link = &h.chunks;
    while (*link != no_chunk) {
        chunk const c(*link);
        slab& s = c.record();
        bool const is_free =
            c.in->entry_at(c.slice) == (h.tag | entry_unused) && s.slices == s.chunk_slices;
        if (is_free && h.limit.held() > keep) {
            *link = s.chunk_next;
            take_out(h, s);
            give(h, c);
        } else {
            link = &s.chunk_next;
        }
    }
}

heap_numbers count_chunks(const heap& h) noexcept
{
    heap_numbers n;
    for_each_chunk(h, [&](chunk c) {
        n.chunks += 1;
        for (std::size_t g = c.slice; g < c.slice + c.slices();) {
            slab const& s = c.in->slabs[g]; // a slab, a span, or a free span
            g += s.slices;
            if (is_class(c.in->entry_at(g - s.slices))) {
                n.blocks_live += s.used;
                n.bytes_live += std::size_t{s.used} * s.usable_bytes();
            }
        }
    });
    return n;
}

// --- large blocks of a heap -----------------------------------------------------

void* allocate_large(heap& h, std::size_t bytes, std::size_t align, bool* zero) noexcept
{
    std::size_t const slices = (bytes + (bytes == 0) + slice_bytes - 1) / slice_bytes;
    std::size_t const align_slices = std::max<std::size_t>(align / slice_bytes, 1);
    if (bytes > bytes_max || slices > reservation_slices_max ||
        align_slices > reservation_slices_max || !charge(h, slices * slice_bytes))
        return os::out_of_memory();
    span const found = the_slice_heap.take(slices, align_slices);
    if (found.in == nullptr) {
        h.limit.uncharge(slices * slice_bytes);
        return os::out_of_memory();
    }
    slab& s = found.record();
    s.owner.store(&h, std::memory_order_relaxed);
    s.start = found.start();
    s.slices = static_cast<std::uint32_t>(slices);
    s.back = 0;
    s.previous = nullptr;
    found.in->mark(found.slice, 1, h.tag | entry_large);
    found.in->mark(found.slice + 1, slices - 1, inside_of(h.tag));
    if (zero != nullptr)
        *zero = found.zero;
    os::hold const alone(h.large_lock);
    s.next = std::exchange(h.large, &s);
    if (s.next != nullptr)
        s.next->previous = &s;
    return s.start;
}

void free_large(heap& h, reservation& in, std::size_t slice) noexcept
{
    slab& s = in.slabs[slice];
    {
        os::hold const alone(h.large_lock);
        (s.previous != nullptr ? s.previous->next : h.large) = s.next;
        if (s.next != nullptr)
            s.next->previous = s.previous;
    }
    h.limit.uncharge(s.slices * slice_bytes);
    the_slice_heap.give(in, slice, s.slices);
}

bool resize_large(heap& h, slab& s, std::size_t bytes) noexcept
{
    std::size_t const before = s.slices * slice_bytes;
    std::size_t const more = bytes > before ? align_up(bytes - before, slice_bytes) : 0;
    if (more != 0 && (more < bytes - before || !charge(h, more)))
        return false;
    os::hold const alone(h.large_lock); // `count` in another thread may read `s`
    bool const done = engine::resize_large(s.start, bytes) != nullptr;
    std::size_t const now = s.slices * slice_bytes;
    h.limit.uncharge(before + more - now);
    return done;
}

void free_all_large(heap& h) noexcept
{
    while (h.large != nullptr) {
        reservation& r = *reservation_of(h.large->start);
        free_large(h, r, r.slice_of(h.large->start));
    }
}

} // namespace mallard::engine
