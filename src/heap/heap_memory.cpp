// Where the granules of heaps come from, and what they cost.
#include "heap.hpp"
#include "large.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mallard::engine {
namespace {

/// False: beyond the limit, and nothing has changed.
bool charge(heap& h, std::size_t bytes) noexcept
{
    if (!h.bounds.admit(bytes))
        return false;
    std::size_t const now = h.bounds.held();
    std::size_t most = h.held_max.load(std::memory_order_relaxed);
    while (most < now && !h.held_max.compare_exchange_weak(most, now, std::memory_order_relaxed)) {}
    return true;
}

// --- free runs ---------------------------------------------------------------

std::size_t bin_of(std::size_t granules) noexcept
{
    return granules < 8 ? granules : static_cast<std::size_t>(std::bit_width(granules)) + 4;
}
static_assert(chunk_granules_max == 256); // whose bin is 13

void put(heap& h, window& w, std::size_t granule, std::size_t granules) noexcept
{
    slab& s = w.slabs[granule];
    s.start = w.address_of(granule);
    s.granules = static_cast<std::uint32_t>(granules);
    s.back = 0;
    w.slabs[granule + granules - 1].back = s.granules - 1;
    slab*& bin = h.bins[bin_of(granules)];
    h.bins_used |= 1u << bin_of(granules);
    s.previous = nullptr;
    s.next = std::exchange(bin, &s);
    if (s.next != nullptr)
        s.next->previous = &s;
}

void take_out(heap& h, slab& s) noexcept
{
    std::size_t const bin = bin_of(s.granules);
    (s.previous != nullptr ? s.previous->next : h.bins[bin]) = s.next;
    if (s.next != nullptr)
        s.next->previous = s.previous;
    if (h.bins[bin] == nullptr)
        h.bins_used &= ~(1u << bin);
}

/// The shortest bins that may have one, first fit there; null: there is none.
slab* find_free(const heap& h, std::size_t granules) noexcept
{
    std::size_t const least = bin_of(granules);
    for (std::uint32_t left = h.bins_used >> least << least; left != 0; left &= left - 1)
        for (slab* s = h.bins[std::countr_zero(left)]; s != nullptr; s = s->next)
            if (s->granules >= granules)
                return s;
    return nullptr;
}

void forget_free(heap& h) noexcept
{
    std::fill(std::begin(h.bins), std::end(h.bins), nullptr);
    h.bins_used = 0;
}

// --- chunks ------------------------------------------------------------------

constexpr unsigned granule_bits = 26;
static_assert(window_granules_max <= std::size_t{1} << granule_bits);

/// Its window and its first granule in one word.
std::uint32_t name_of(const window& w, std::size_t granule) noexcept
{
    return static_cast<std::uint32_t>(static_cast<std::size_t>(&w - windows) << granule_bits |
                                      granule);
}

struct chunk {
    window* in;
    std::size_t granule;

    explicit chunk(std::uint32_t name) noexcept
        : in(windows + (name >> granule_bits)),
          granule(name & ((std::uint32_t{1} << granule_bits) - 1))
    {
    }
    slab& record() const noexcept { return in->slabs[granule]; }
    std::size_t granules() const noexcept { return record().chunk_granules; }
};

void give(heap& h, chunk c) noexcept
{
    std::size_t const granules = std::exchange(c.record().chunk_granules, std::uint16_t{0});
    the_central.give(*c.in, c.granule, granules);
    h.bounds.discharge(granules * granule_bytes);
}

/// Calls `f(chunk)` for each, which may give it back.
template <class F>
void for_each_chunk(const heap& h, F f) noexcept
{
    for (std::uint32_t name = h.chunks; name != no_chunk;) {
        chunk const c(name);
        name = c.record().chunk_next;
        f(c);
    }
}

/// One more chunk, with at least so many granules; less than the step where that is refused.
bool grow(heap& h, std::size_t least) noexcept
{
    std::size_t const room = std::max(h.bounds.left() / granule_bytes, least);
    for (std::size_t want = std::min(std::max<std::size_t>(h.step, least), room);;
         want = std::max(want / 2, least)) {
        if (!charge(h, want * granule_bytes))
            return false;
        if (run const r = the_central.take(want); r.in != nullptr) {
            r.record().chunk_granules = static_cast<std::uint16_t>(want);
            r.record().chunk_next = std::exchange(h.chunks, name_of(*r.in, r.granule));
            r.in->mark(r.granule, want, h.tag | entry_unused);
            put(h, *r.in, r.granule, want);
            h.step = std::min(2 * h.step, chunk_granules_max);
            return true;
        }
        h.bounds.discharge(want * granule_bytes);
        if (want == least)
            return false;
    }
}

} // namespace

run take_of(heap& h, std::size_t granules) noexcept
{
    slab* s = find_free(h, granules);
    if (s == nullptr && grow(h, granules))
        s = find_free(h, granules);
    if (s == nullptr)
        return {};
    window& w = *window_of(s->start);
    std::size_t const first = w.granule_of(s->start);
    std::size_t const left = s->granules - granules;
    // From its end, so that what is left is where it was, and in its bin as a rule.
    if (left != 0 && bin_of(left) == bin_of(s->granules)) {
        s->granules = static_cast<std::uint32_t>(left);
        w.slabs[first + left - 1].back = s->granules - 1;
    } else {
        take_out(h, *s);
        if (left != 0)
            put(h, w, first, left);
    }
    return {&w, first + left, false};
}

void give_to(heap& h, slab& s) noexcept
{
    window& w = *window_of(s.start);
    entry const unused = h.tag | entry_unused;
    std::size_t first = w.granule_of(s.start);
    std::size_t end = first + s.granules;
    w.mark(first, s.granules, unused);
    if (w.has(end) && w.entry_at(end) == unused && w.slabs[end].chunk_granules == 0) {
        slab& after = w.slabs[end];
        take_out(h, after);
        end += after.granules;
    }
    if (s.chunk_granules == 0 && w.entry_at(first - 1) == unused) {
        slab& before = w.slab_at(first - 1);
        take_out(h, before);
        first -= before.granules;
    }
    put(h, w, first, end - first);
}

void free_chunks(heap& h) noexcept
{
    forget_free(h);
    for_each_chunk(h, [&](chunk c) { give(h, c); });
    h.chunks = no_chunk;
    h.step = chunk_granules_first;
}

void empty_chunks(heap& h) noexcept
{
    forget_free(h);
    for_each_chunk(h, [&](chunk c) {
        c.in->mark(c.granule, c.granules(), h.tag | entry_unused);
        put(h, *c.in, c.granule, c.granules());
    });
}

void trim_chunks(heap& h, std::size_t keep) noexcept
{
    std::uint32_t* link = &h.chunks;
    while (*link != no_chunk) {
        chunk const c(*link);
        slab& s = c.record();
        bool const is_free =
            c.in->entry_at(c.granule) == (h.tag | entry_unused) && s.granules == s.chunk_granules;
        if (is_free && h.bounds.held() > keep) {
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
        for (std::size_t g = c.granule; g < c.granule + c.granules();) {
            slab const& s = c.in->slabs[g]; // of a free run too
            g += s.granules;
            if (is_class(c.in->entry_at(g - s.granules))) {
                n.blocks_live += s.used;
                n.bytes_live += std::size_t{s.used} * s.usable_bytes();
            }
        }
    });
    return n;
}

// --- blocks of their own --------------------------------------------------------

void* allocate_large(heap& h, std::size_t bytes, std::size_t align, bool* zero) noexcept
{
    std::size_t const granules = (bytes + (bytes == 0) + granule_bytes - 1) / granule_bytes;
    std::size_t const align_granules = std::max<std::size_t>(align / granule_bytes, 1);
    if (bytes > bytes_max || granules > window_granules_max ||
        align_granules > window_granules_max || !charge(h, granules * granule_bytes))
        return os::out_of_memory();
    run const r = the_central.take(granules, align_granules);
    if (r.in == nullptr) {
        h.bounds.discharge(granules * granule_bytes);
        return os::out_of_memory();
    }
    slab& s = r.record();
    s.owner.store(&h, std::memory_order_relaxed);
    s.start = r.start();
    s.granules = static_cast<std::uint32_t>(granules);
    s.back = 0;
    s.previous = nullptr;
    r.in->mark(r.granule, 1, h.tag | entry_large);
    r.in->mark(r.granule + 1, granules - 1, inside_of(h.tag));
    if (zero != nullptr)
        *zero = r.zero;
    os::hold const alone(h.large_lock);
    s.next = std::exchange(h.large, &s);
    if (s.next != nullptr)
        s.next->previous = &s;
    return s.start;
}

void free_large(heap& h, window& in, std::size_t granule) noexcept
{
    slab& s = in.slabs[granule];
    {
        os::hold const alone(h.large_lock);
        (s.previous != nullptr ? s.previous->next : h.large) = s.next;
        if (s.next != nullptr)
            s.next->previous = s.previous;
    }
    h.bounds.discharge(s.granules * granule_bytes);
    the_central.give(in, granule, s.granules);
}

bool resize_large(heap& h, slab& s, std::size_t bytes) noexcept
{
    std::size_t const before = s.granules * granule_bytes;
    std::size_t const more = bytes > before ? align_up(bytes - before, granule_bytes) : 0;
    if (more != 0 && (more < bytes - before || !charge(h, more)))
        return false;
    os::hold const alone(h.large_lock); // somebody may be counting
    bool const done = engine::resize_large(s.start, bytes) != nullptr;
    std::size_t const now = s.granules * granule_bytes;
    h.bounds.discharge(before + more - now);
    return done;
}

void free_all_large(heap& h) noexcept
{
    while (h.large != nullptr) {
        window& w = *window_of(h.large->start);
        free_large(h, w, w.granule_of(h.large->start));
    }
}

} // namespace mallard::engine
