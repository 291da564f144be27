#include "requests.hpp"

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
#include <cstring>

namespace mallard::engine {
namespace {

[[noreturn]] void stop_at(const void* p, entry e, const char* call) noexcept
{
    if (e == 0 || offset_in(e) == entry_unused)
        stop_at_foreign(p, call);
    stop_at_interior(p, call);
}

} // namespace

found find(const void* p, const char* call) noexcept
{
    reservation* const w = reservation_of(p);
    if (w == nullptr)
        return {nullptr, 0, entry_large, nullptr};
    std::size_t const g = w->slice_of(p);
    entry const e = w->entry_at(g);
    if ((offset_in(e) == entry_large || e == entry_sampled) && w->address_of(g) == p)
        return {w, g, e, nullptr};
    if (!is_class(e))
        stop_at(p, e, call);
    slab& s = w->slab_at(g);
    if (!s.shape().begins(s.offset_of(p)))
        stop_at_interior(p, call);
    if (is_free(p, mark_for(p, the_key)))
        stop_at_double_free(p, call);
    return {w, g, e, &s};
}

namespace {

/// A span is free at once, whoever frees it: nothing else is in it.
void free_span(found const& b) noexcept
{
    if (!b.in->change(b.slice, b.what, 0))
        stop_at_double_free(b.of->start, "free");
    the_slice_heap.give_of_class(*b.in, b.slice);
}

void* grow_elsewhere(void* block, std::size_t bytes_now, std::size_t bytes) noexcept
{
    void* const fresh = allocate(bytes);
    if (fresh == nullptr)
        return bytes <= bytes_now ? block : nullptr; // less room is always to be had
    std::memcpy(fresh, block, std::min(bytes_now, bytes));
    deallocate(block);
    return fresh;
}

/// It moves when it would if nobody had chosen it: what moves is chosen anew.
void* reallocate_sample(found const& b, void* block, std::size_t bytes) noexcept
{
    std::size_t const now = sample_bytes(b);
    if (bytes > now || bytes < now / 2)
        return grow_elsewhere(block, now, bytes);
    resize_sample(b, bytes);
    return block;
}

/// A span becomes one of another class where it is; false: the slices after it are taken.
bool resize_span(thread_cache& cache, found const& b, std::size_t bytes) noexcept
{
    std::size_t const index = block_class::of(bytes);
    std::size_t const slices = index < classed_count ? shapes[index].slices : slices_for(bytes);
    slab& s = *b.of;
    // Of those who free or resize it at once, one finds it.
    if (!b.in->change(b.slice, b.what, entry_inside))
        stop_at_double_free(s.start, "realloc");
    if (slices < s.slices) {
        the_slice_heap.give(*b.in, b.slice + slices, s.slices - slices);
    } else if (slices > s.slices) {
        bool zero = false;
        if (!the_slice_heap.extend(*b.in, b.slice, s.slices, slices - s.slices, zero)) {
            b.in->mark(b.slice, 1, b.what);
            return false;
        }
        b.in->mark(b.slice + s.slices, slices - s.slices, entry_inside);
    }
    s.slices = static_cast<std::uint32_t>(slices);
    s.index = static_cast<std::uint8_t>(index);
    s.owner.store(&cache, std::memory_order_relaxed);
    b.in->mark(b.slice, 1, entry_of(cache.tag, offset_of_class(index)));
    return true;
}

/// A small block of a thread's slab.
bool is_anothers(const void* block) noexcept
{
    std::size_t const g = reservations[0].slice_of(block);
    if (!reservations[0].has(g))
        return false;
    entry const e = reservations[0].entry_at(g);
    return (e & (heap_bit | (class_offset_end - 1))) - offset_of_class(0) <
           deferred_class_count * class_offset_unit;
}

/// What is neither in the first reservation nor small, or is nothing; or the thread has no thread
/// cache.
[[gnu::noinline]] void free_rare(void* block, thread_cache* cache) noexcept
{
    if (block == nullptr)
        return;
    found const b = find(block, "free");
    if (is_heaps(b.what)) [[unlikely]]
        return free_of_heap(b, block);
    if (b.of == nullptr) {
        if (b.what == entry_sampled)
            return free_sample(b);
        if (!free_large(block))
            stop_at_foreign(block, "free");
        return;
    }
    if (b.is_span() && owner_of(b.what ^ cache->tag) != 0)
        return free_span(b);
    // With a thread cache it is looked at anew: that one may have been abandoned, and its slabs
    // others' by the time that it was taken.
    if (cache->is_decoy()) {
        thread_cache* const own = own_cache();
        return own != nullptr ? free_elsewhere(block, own) : send_block(*b.of, block);
    }
    if (owner_of(b.what ^ cache->tag) == 0)
        return push(block, cache, offset_in(b.what));
    free_past_list(block, *cache);
}

} // namespace

void free_elsewhere(void* block, thread_cache* cache) noexcept
{
    if (cache->is_decoy() || !is_anothers(block)) [[unlikely]]
        return free_rare(block, cache);
    if (++cache->deferred.in_a_row <= deferred_frees::at_once)
        return free_past_list(block, *cache);
    defer(*cache, block);
}

void* allocate_aligned_rare(std::size_t bytes, std::size_t align) noexcept
{
    if (align <= 16)
        return allocate(bytes);
    if (bytes > block_bytes_max || align > slice_bytes)
        return allocate_large(bytes, align);
    if (bytes > classed_bytes_max)
        return allocate_span(bytes, shown_cache());
    return pop(shown_cache(), offset_of_aligned(bytes, align), bytes);
}

void* allocate_zeroed(std::size_t bytes) noexcept
{
    bool zero = false;
    void* block = nullptr;
    if (bytes > block_bytes_max) {
        block = allocate_large(bytes, slice_bytes, &zero);
    } else if (bytes < slice_bytes) {
        block = allocate(bytes);
    } else if (bytes > classed_bytes_max) {
        block = allocate_span(bytes, shown_cache(), &zero);
    } else {
        class_offset const offset = offset_of_class(block_class::of(bytes));
        thread_cache* const cache = shown_cache();
        block = sample(cache, bytes, 1, &zero);
        if (block == nullptr) {
            thread_cache* const own = shown_cache()->real;
            block = own == nullptr || own->list_at(offset).head != nullptr
                        ? pop(own == nullptr ? cache : own, offset)
                        : retry_after_flush([&] { return span_for(*own, bytes, zero); });
        }
    }
    if (block != nullptr && !zero)
        std::memset(block, 0, bytes);
    return block;
}

void* reallocate(void* block, std::size_t bytes) noexcept
{
    found const b = find(block, "realloc");
    if (is_heaps(b.what)) [[unlikely]]
        return reallocate_of_heap(b, block, bytes);
    if (b.of == nullptr) {
        if (b.what == entry_sampled)
            return reallocate_sample(b, block, bytes);
        std::size_t const now = large_bytes(block);
        if (now == 0)
            stop_at_foreign(block, "realloc");
        if (bytes > now / 2 && bytes <= now && now - bytes < slice_bytes)
            return block;
        void* const same = resize_large(block, bytes);
        return same != nullptr ? same : grow_elsewhere(block, now, bytes);
    }
    std::size_t const now = b.of->usable_bytes();
    if (bytes <= now && (now <= classed_bytes_max ? bytes >= now / 2 : now - bytes < slice_bytes))
        return block;
    thread_cache* const own = shown_cache()->real;
    if (b.is_span() && bytes >= slice_bytes && bytes <= block_bytes_max && own != nullptr &&
        resize_span(*own, b, bytes))
        return block;
    return grow_elsewhere(block, now, bytes);
}

std::size_t usable_bytes(const void* block, const char* call) noexcept
{
    found const b = find(block, call);
    if (b.of != nullptr)
        return b.of->usable_bytes();
    std::size_t const bytes = b.what == entry_sampled ? sample_bytes(b) : large_bytes(block);
    if (bytes == 0)
        stop_at_foreign(block, call);
    return bytes;
}

void deallocate_doubtful(void* block, std::size_t bytes) noexcept
{
    if (block == nullptr)
        return;
    std::size_t const there = usable_bytes(block, "free");
    bool const is_small = there < slice_bytes;
    if (bytes > there || (bytes < slice_bytes && !is_small && there / 4 > bytes))
        stop_at_wrong_size(block, bytes, there);
    deallocate(block);
}

} // namespace mallard::engine
