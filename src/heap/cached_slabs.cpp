#include "cached_slabs.hpp"

#include "misuse.hpp"
#include "slice_heap.hpp"

#include <algorithm>

namespace mallard::engine {
namespace {

/// Writes the record of a new slab or span, of which no block is allocated yet.
slab& begin_slab(thread_cache& cache, std::size_t index, std::size_t slices, span const& r) noexcept
{
    slab& s = r.record();
    s.owner.store(&cache, std::memory_order_relaxed);
    s.free = nullptr;
    s.used = s.carved = 0;
    s.listed = false;
    if (!r.from_cache) {
        s.start = r.start();
        s.slices = static_cast<std::uint32_t>(slices);
        s.index = static_cast<std::uint8_t>(index);
        std::uint32_t const with_blocks = index < span_class_first ? s.slices : 1;
        for (std::uint32_t i = 0; i < with_blocks; ++i)
            r.in->slabs[r.slice + i].back = i;
    }
    return s;
}

/// Counts blocks that were added to a free list. If the list now exceeds its limit, raises the
/// limit, because free blocks use no more memory in the list than in their slab.
void count_added(free_list& l, std::size_t count) noexcept
{
    l.room -= static_cast<std::int32_t>(count);
    if (l.room < 0) {
        l.limit = static_cast<std::uint16_t>(l.limit - l.room);
        l.room = 0;
    }
}

} // namespace

bool take_slab(thread_cache& cache, class_offset offset, slab_queue& queue) noexcept
{
    std::size_t const index = class_of_offset(offset);
    std::size_t const slices = shapes[index].slices;
    span const r = cache.policy->take_slices(cache, index, slices);
    if (r.in == nullptr)
        return false;
    queue.fresh = &begin_slab(cache, index, slices, r);
    r.in->mark(r.slice, slices, entry_of(cache.tag, offset));
    return true;
}

void* take_span(thread_cache& cache, std::size_t bytes, bool& zero) noexcept
{
    std::size_t const index = block_class::of(bytes);
    std::size_t const slices = index < classed_count ? shapes[index].slices : slices_for(bytes);
    span const r = cache.policy->take_slices(cache, index, slices);
    if (r.in == nullptr)
        return nullptr;
    slab& s = begin_slab(cache, index, slices, r);
    s.used = s.carved = 1;
    r.in->mark(r.slice, 1, entry_of(cache.tag, offset_of_class(index)));
    if (!r.from_cache)
        r.in->mark(r.slice + 1, s.slices - 1, inside_of(cache.tag));
    zero = r.zero;
    if (!zero)
        clear(s.start);
    return s.start;
}

void* carve_page(thread_cache& cache, class_offset offset, slab_queue& queue) noexcept
{
    slab& s = *queue.fresh;
    const class_shape& shape = s.shape();
    std::uint32_t const left = shape.capacity - s.carved;
    std::uint32_t const page = std::max<std::uint32_t>(1, page_bytes / shape.bytes);
    // If the rest of the slab is small and half of the slab is carved already, carve the whole
    // rest.
    std::uint32_t const count =
        s.carved >= shape.capacity / 2 && std::size_t{left} * shape.bytes <= 4 * page_bytes
            ? left
            : std::min(left, page);
    std::byte* const first = s.start + std::size_t{s.carved} * shape.bytes;
    s.carved += count;
    s.used += count;
    if (s.carved == shape.capacity)
        queue.fresh = nullptr;
    free_list& l = cache.list_at(offset);
    void* const rest = l.head;
    for (std::uint32_t i = 1; i < count; ++i) { // in ascending order, for the hardware prefetcher
        std::byte* const block = first + std::size_t{i} * shape.bytes;
        link(block, i + 1 == count ? rest : block + shape.bytes, mark_for(block, cache.key));
    }
    if (count > 1)
        l.head = first + shape.bytes;
    count_added(l, count - 1);
    clear(first);
    return first;
}

void take_free_blocks(thread_cache& cache, slab& s) noexcept
{
    free_list& l = cache.lists[s.index];
    cache.queues[s.index].unlink(s);
    std::uint32_t const count = s.carved - s.used;
    if (l.head != nullptr) {
        void* last = s.free;
        for (std::uint32_t i = 1; i < count; ++i)
            last = next_of(last, cache.key);
        link(last, l.head, mark_for(last, cache.key));
    }
    count_added(l, count);
    s.used = s.carved;
    l.head = s.free;
    s.free = nullptr;
}

void return_block(thread_cache& cache, void* block) noexcept
{
    slab& s = slab_of(block);
    if (s.index >= span_class_first)
        return give_slab(s);
    // So far, `push` has checked only the alignment of the address. In most classes, an aligned
    // address may still be inside a block.
    if (!s.shape().begins(s.offset_of(block))) [[unlikely]]
        stop_at_interior(block, "free");
    return_to_slab(cache, s, block, mark_for(block, cache.key));
}

void return_blocks(thread_cache& cache, void* first) noexcept
{
    while (first != nullptr)
        return_block(cache, std::exchange(first, next_of(first, cache.key)));
}

void settle(thread_cache& cache, slab& s) noexcept
{
    slab_queue& queue = cache.queues[s.index];
    if (s.used != 0) {
        if (!s.listed)
            queue.link(s);
        return;
    }
    if (s.listed)
        queue.unlink(s);
    s.free = nullptr;
    s.carved = 0;
    if (queue.fresh == nullptr)
        queue.fresh = &s;
    else if (queue.fresh != &s)
        give_slab(s);
}

void give_fresh_if_unused(slab_queue& queue) noexcept
{
    if (queue.fresh != nullptr && queue.fresh->used == 0)
        give_slab(*std::exchange(queue.fresh, nullptr));
}

} // namespace mallard::engine
