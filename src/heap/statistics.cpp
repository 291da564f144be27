// Computes statistics from the caches, slabs and heaps, while other threads may be changing them.
#include "statistics.hpp"

#include "heap.hpp"
#include "large.hpp"
#include "racy_read.hpp"
#include "registry.hpp"
#include "slice_heap.hpp"
#include "thread_cache.hpp"
#include "threads.hpp"

#include <algorithm>
#include <cstdlib>

namespace mallard::engine {
namespace {

void count(reservation& r, std::size_t slice, heap_statistics& s) noexcept
{
    entry const e = r.entry_at(slice);
    slab const& of = r.slabs[slice];
    bool const is_above = is_class(e) && class_of_offset(offset_in(e)) >= classed_count;
    if (offset_in(e) == entry_large || e == entry_sampled || is_above) {
        s.large_blocks += 1;
        s.large_bytes += racy_read(of.slices) * slice_bytes;
    } else if (is_class(e) && racy_read(of.back) == 0) {
        class_statistics& c = s.classes[class_of_offset(offset_in(e))];
        c.slabs += 1;
        c.live += racy_read(of.used);
    }
}

void count_lists(const thread_cache& cache, heap_statistics& s) noexcept
{
    if (cache.wanted.load(std::memory_order_relaxed) != 0) // another thread took the blocks
        return;
    for (std::size_t i = classed_count; i < class_count; ++i)
        if (void* const block = racy_read(cache.lists[i].head)) {
            std::size_t const bytes = racy_read(slab_of(block).slices) * slice_bytes;
            s.large_blocks -= 1;
            s.large_bytes -= bytes;
            s.bytes_cached += bytes;
        }
    for (std::size_t i = 0; i < classed_count; ++i) {
        std::int32_t const room = racy_read(cache.lists[i].room);
        std::int32_t const cached =
            racy_read(cache.lists[i].limit) - deferred_frees::room_if_shown(room);
        s.classes[i].cached += cached > 0 ? static_cast<std::size_t>(cached) : 0;
    }
}

std::size_t count_fresh(const bump_range& these, const class_shape& shape) noexcept
{
    auto const bytes = static_cast<std::size_t>(racy_read(these.end) - racy_read(these.next));
    return std::min<std::size_t>(bytes / shape.bytes,
                                 shape.capacity); // a racy read may be too large
}

} // namespace

void collect_statistics(heap_statistics& s) noexcept
{
    for (std::size_t i = 0; i < classed_count; ++i)
        s.classes[i].bytes = shapes[i].usable_bytes();
    for (reservation& r : reservations)
        for (std::size_t g = 0; g < r.commit_limit(); ++g)
            count(r, g, s);
    for (thread_cache const* cache = all_caches(); cache != nullptr; cache = cache->next_of_all) {
        s.threads += cache != &fallback_cache(); // the fallback cache belongs to no thread
        count_lists(*cache, s);
    }
    for (heap const* h = all_heaps(); h != nullptr; h = h->next_of_all) {
        count_lists(*h, s);
        for (std::size_t i = 0; i < span_class_first; ++i)
            s.classes[i].cached += count_fresh(h->fresh.of_class[i], shapes[i]);
    }
    for (class_statistics& c : s.classes) {
        c.live -= c.cached < c.live ? c.cached : c.live;
        s.blocks_live += c.live;
        s.bytes_live += c.live * c.bytes;
        s.bytes_cached += c.cached * c.bytes;
    }
    usage const u = the_slice_heap.now();
    huge_usage const huge = huge_now();
    s.large_blocks += huge.blocks;
    s.large_bytes += huge.bytes;
    s.blocks_live += s.large_blocks;
    s.bytes_live += s.large_bytes;
    s.bytes_taken = (u.used + u.dirty) * slice_bytes + huge.bytes;
    s.bytes_taken_max = u.taken_max * slice_bytes + huge.bytes_max;
    s.bytes_idle = u.dirty * slice_bytes;
    s.bytes_returned = u.purged * slice_bytes + huge.bytes_returned;
}

void write_text(const heap_statistics& s, text_writer& out) noexcept
{
    out << "mallard: " << s.blocks_live << " blocks, " << s.bytes_live << " bytes live; "
        << s.bytes_taken << " bytes from the system, at most " << s.bytes_taken_max << '\n'
        << "  cached " << s.bytes_cached << ", idle " << s.bytes_idle << ", returned "
        << s.bytes_returned << "; threads " << s.threads << '\n';
    for (class_statistics const& c : s.classes)
        if (c.slabs != 0)
            out << "  " << c.bytes << " bytes: " << c.live << " live, " << c.cached
                << " cached, in " << c.slabs << " slabs\n";
    if (s.large_blocks != 0)
        out << "  larger: " << s.large_blocks << " blocks, " << s.large_bytes << " bytes\n";
}

void write_json(const heap_statistics& s, text_writer& out) noexcept
{
    out << "{\"blocks_live\":" << s.blocks_live << ",\"bytes_live\":" << s.bytes_live
        << ",\"bytes_cached\":" << s.bytes_cached << ",\"bytes_taken\":" << s.bytes_taken
        << ",\"bytes_taken_max\":" << s.bytes_taken_max << ",\"bytes_idle\":" << s.bytes_idle
        << ",\"bytes_returned\":" << s.bytes_returned << ",\"large_blocks\":" << s.large_blocks
        << ",\"large_bytes\":" << s.large_bytes << ",\"threads\":" << s.threads << ",\"classes\":[";
    bool first = true;
    for (class_statistics const& c : s.classes) {
        if (c.slabs == 0)
            continue;
        out << (first ? "" : ",") << "{\"bytes\":" << c.bytes << ",\"live\":" << c.live
            << ",\"cached\":" << c.cached << ",\"slabs\":" << c.slabs << '}';
        first = false;
    }
    out << "]}\n";
}

} // namespace mallard::engine
