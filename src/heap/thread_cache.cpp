// Where blocks come from when a list of a thread cache is empty.
#include "thread_cache.hpp"

#include "decay.hpp"
#include "heap.hpp"
#include "large.hpp"
#include "limits.hpp"
#include "misuse.hpp"
#include "remote.hpp"
#include "sample.hpp"
#include "slice_heap.hpp"
#include "threads.hpp"

#include <algorithm>
#include <utility>

namespace mallard::engine {

constinit thread_cache empty_thread_cache;
constinit thread_cache exited_thread_cache;
constinit thread_cache visited_thread_cache;
constinit std::atomic<std::size_t> allowances{0};
constinit thread_local std::atomic<thread_cache*> my_cache{&empty_thread_cache};

namespace {

constexpr std::int32_t handed_over_least = 32;
constexpr std::size_t allowance_max[] = {std::size_t{2} << 20, std::size_t{32} << 20};

/// A list that got blocks takes as many back: they are no more memory than before.
void add(free_list& l, std::size_t count) noexcept
{
    l.room -= static_cast<std::int32_t>(count);
    if (l.room < 0) {
        l.limit = static_cast<std::uint16_t>(l.limit - l.room);
        l.room = 0;
    }
}

/// Of a list that is empty.
void set_limit(thread_cache& cache, free_list& l, const class_shape& shape,
               std::size_t limit) noexcept
{
    int const more = static_cast<int>(limit) - l.limit;
    change_allowance(cache, shape, more);
    l.room += more;
    l.limit = static_cast<std::uint16_t>(limit);
}

void lengthen(thread_cache& cache, free_list& l, const class_shape& shape,
              std::size_t more) noexcept
{
    std::size_t const kind = shape.is_classed() ? 0 : 1;
    if (l.limit + more > shape.limit_max ||
        cache.allowance[kind] + more * shape.bytes > allowance_max[kind])
        return;
    if (is_heaps(cache.tag) ||
        allowances.load(std::memory_order_relaxed) + more * shape.bytes <= allowances_max)
        set_limit(cache, l, shape, l.limit + more);
    else
        visit_threads_soon();
}

/// Whoever frees more than its list holds and then wants them again gets a list twice as
/// long, as far as the allowance of the thread cache reaches. But more than any list holds are
/// better off in their slabs: a few that were kept of each would keep them all from coming
/// back whole.
void adapt(thread_cache& cache, free_list& l, std::size_t index) noexcept
{
    const class_shape& shape = shapes[index];
    if (index < classed_count)
        cache.refilled |= std::uint64_t{1} << index;
    std::uint32_t const overflows = std::exchange(cache.overflows[index], 0);
    if (overflows == 0)
        return;
    if (overflows > shape.limit_max)
        return set_limit(cache, l, shape, std::max<std::size_t>(shape.limit, l.limit / 2));
    lengthen(cache, l, shape, shape.capacity == 1 ? 1 : l.limit);
}

/// All of a slab's free blocks, before those that are in the list.
void hand_over(thread_cache& cache, free_list& l, slab& s) noexcept
{
    unlink_slab(cache.queues[s.index], s);
    std::uint32_t const count = s.carved - s.used;
    if (l.head != nullptr) {
        void* last = s.free;
        for (std::uint32_t i = 1; i < count; ++i)
            last = next_of(last, cache.key);
        link(last, l.head, mark_for(last, cache.key));
    }
    add(l, count);
    s.used = s.carved;
    l.head = s.free;
    s.free = nullptr;
}

/// A page's worth of blocks that were never given out, until half the slab is in use;
/// then what is left. The first is for the caller.
void* carve(thread_cache& cache, class_offset offset, slab_queue& q) noexcept
{
    slab& s = *q.fresh;
    if (is_heaps(cache.tag)) {
        q.fresh = nullptr;
        return begin_bump_range(static_cast<heap&>(cache), s);
    }
    const class_shape& shape = s.shape();
    std::uint32_t const left = shape.capacity - s.carved;
    std::uint32_t const page = std::max<std::uint32_t>(1, page_bytes / shape.bytes);
    std::uint32_t const count =
        s.carved >= shape.capacity / 2 && left * shape.bytes <= 4 * page_bytes
            ? left
            : std::min(left, page);
    std::byte* const first = s.start + std::size_t{s.carved} * shape.bytes;
    s.carved += count;
    s.used += count;
    if (s.carved == shape.capacity)
        q.fresh = nullptr;
    free_list& l = cache.list_at(offset);
    void* const rest = l.head;
    for (std::uint32_t i = 1; i < count; ++i) { // upwards, as processors foresee it
        std::byte* const block = first + std::size_t{i} * shape.bytes;
        link(block, i + 1 == count ? rest : block + shape.bytes, mark_for(block, cache.key));
    }
    if (count > 1)
        l.head = first + shape.bytes;
    add(l, count - 1);
    clear(first);
    return first;
}

span take_slices(thread_cache& cache, std::size_t index, std::size_t slices) noexcept
{
    if (the_slice_heap.has_grown()) [[unlikely]]
        visit_threads(visits::of_idle);
    if (is_heaps(cache.tag))
        return take_of(static_cast<heap&>(cache), slices);
    return index < classed_count ? the_slice_heap.take_of_class(index)
                                 : the_slice_heap.take(slices);
}

/// One that belongs to nobody yet becomes one of this class and thread cache, without a block.
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

bool take_slab(thread_cache& cache, class_offset offset, slab_queue& q) noexcept
{
    std::size_t const index = class_of_offset(offset);
    std::size_t const slices = shapes[index].slices;
    span const r = take_slices(cache, index, slices);
    if (r.in == nullptr)
        return false;
    q.fresh = &begin_slab(cache, index, slices, r);
    r.in->mark(r.slice, slices, entry_of(cache.tag, offset));
    return true;
}

} // namespace

void tag_decoy_caches() noexcept
{
    for (thread_cache* const cache :
         {&empty_thread_cache, &exited_thread_cache, &visited_thread_cache})
        cache->tag = decoy_tag;
}

void* span_for(thread_cache& cache, std::size_t bytes, bool& zero) noexcept
{
    std::size_t const index = block_class::of(bytes);
    std::size_t const slices = index < classed_count ? shapes[index].slices : slices_for(bytes);
    span const r = take_slices(cache, index, slices);
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

void* refill_in(thread_cache& cache, class_offset offset) noexcept
{
    tick(cache);
    std::size_t const index = class_of_offset(offset);
    return_deferred_blocks(cache);
    cache.deferred.in_a_row = 0;
    if (index < deferred_class_count)
        unhide_list(cache, index);
    if (cache.list_at(offset).head != nullptr)
        return pop(&cache, offset);
    adapt(cache, cache.list_at(offset), index);
    if (index >= span_class_first) {
        bool zero = false;
        return span_for(cache, shapes[index].bytes, zero);
    }
    read_messages(cache);
    slab_queue& q = cache.queues[index];
    if (q.partial == nullptr) {
        if (q.fresh != nullptr || is_heaps(cache.tag) ||
            reclaim_slab(cache, offset, q) == nullptr) {
            if (q.fresh == nullptr && !take_slab(cache, offset, q))
                return nullptr;
            return carve(cache, offset, q);
        }
    }
    // Slabs with a block or two are as many slow paths: several at once; but no more than
    // stay near until they are used.
    free_list& l = cache.list_at(offset);
    do
        hand_over(cache, l, *q.partial);
    while (q.partial != nullptr && l.limit - l.room < handed_over_least);
    return pop(&cache, offset);
}

namespace {

/// Of a thread that has no thread cache yet, or no longer, or is sampled.
[[gnu::noinline]] void* refill_decoy(std::size_t bytes, class_offset offset,
                                     thread_cache* cache) noexcept
{
    if (thread_cache* const own = cache->real != nullptr ? cache->real : own_cache()) {
        void* const chosen = sample(shown_cache(), bytes, 1, nullptr);
        return chosen != nullptr ? chosen : pop(own, offset);
    }
    return retry_after_flush([=] {
        return with_cache(cache, [offset](thread_cache& late) { return pop(&late, offset); });
    });
}

} // namespace

void* refill(std::size_t bytes, class_offset offset, thread_cache* cache) noexcept
{
    cache->list_at(offset).room -= 1; // nothing was taken
    if (cache->is_decoy()) [[unlikely]]
        return refill_decoy(bytes, offset, cache);
    return retry_after_flush([=] {
        busy_scope const busy(*cache);
        return refill_in(*cache, offset);
    });
}

void* allocate_above(std::size_t bytes, thread_cache* cache) noexcept
{
    if (bytes > classed_bytes_max) [[unlikely]]
        return bytes > block_bytes_max ? allocate_large(bytes, slice_bytes)
                                       : allocate_span(bytes, cache);
    return pop(cache, offset_of_class(block_class::of(bytes)), bytes);
}

namespace {

/// Returns the spans of other sizes in the lists to the slice heap, so that the process does not
/// grow. A list of spans serves one size that is requested again and again.
[[gnu::cold]] void make_room_for_span(thread_cache& cache, std::size_t bytes) noexcept
{
    std::size_t const index = block_class::of(bytes);
    std::size_t const needed = slices_for(bytes);
    free_list& l = cache.lists[index];
    bool const comes_again = std::exchange(cache.overflows[index], 0) == needed;
    if (l.head != nullptr)
        shrink(cache, index, 0);
    for (std::size_t i = class_count; i-- != classed_count;)
        if (cache.lists[i].head != nullptr && the_slice_heap.now().dirty < needed)
            return_block(cache, pop(&cache, offset_of_class(i)));
    if (!comes_again)
        return;
    if (cache.allowance[1] + shapes[index].bytes > allowance_max[1])
        for (std::size_t i = classed_count; i < class_count; ++i)
            shrink(cache, i, 0); // these are not wanted now
    lengthen(cache, l, shapes[index], 1);
}

/// Allocates a span when the list's block is too small, or so large that it would be a waste.
[[gnu::cold, gnu::noinline]] void* refill_span(std::size_t bytes, thread_cache* cache,
                                               bool* zero) noexcept
{
    if (cache->is_decoy())
        if (thread_cache* const own = cache->real != nullptr ? cache->real : own_cache()) {
            void* const chosen = sample(shown_cache(), bytes, 1, zero);
            return chosen != nullptr ? chosen : allocate_span(bytes, own, zero);
        }
    bool is_zero = false;
    void* const block = retry_after_flush([&] {
        return with_cache(cache, [&](thread_cache& own) {
            busy_scope const busy(own);
            tick(own);
            make_room_for_span(own, bytes);
            return span_for(own, bytes, is_zero);
        });
    });
    if (zero != nullptr)
        *zero = is_zero;
    return block;
}

} // namespace

void* allocate_span(std::size_t bytes, thread_cache* cache, bool* zero) noexcept
{
    class_offset const offset = offset_of_class(block_class::of(bytes));
    std::size_t const needed = slices_for(bytes);
    if (void* const block = head_of(cache->list_at(offset)).load(std::memory_order_relaxed)) {
        std::size_t const there = slab_of(block).slices;
        if (there >= needed && there - needed <= needed / 8) [[likely]]
            return pop(cache, offset, bytes);
    }
    return refill_span(bytes, cache, zero);
}

} // namespace mallard::engine
