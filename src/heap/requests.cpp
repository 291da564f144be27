// The slow paths of allocation and free, and the rare kinds of requests.
#include "requests.hpp"

#include "cached_slabs.hpp"
#include "decay.hpp"
#include "found_block.hpp"
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

// --- allocation ----------------------------------------------------------------------

namespace {

/// Allocates for a thread that uses a trap cache, whose lists look empty. Such a thread has no
/// cache yet, or is exiting, or was visited (another thread took its free blocks), or its
/// allocations are sampled, or it watches for idle memory.
[[gnu::noinline]] void* refill_decoy(std::size_t bytes, class_offset offset,
                                     thread_cache* cache) noexcept
{
    if (thread_cache* const own = cache->real != nullptr ? cache->real : own_cache()) {
        void* const sampled = sample(shown_cache(), bytes, 1, nullptr);
        return sampled != nullptr ? sampled : pop(own, offset);
    }
    return retry_after_flush([=] {
        return with_cache(cache,
                          [offset](thread_cache& fallback) { return pop(&fallback, offset); });
    });
}

/// Allocates a span if the free list of the class is empty, or if the first span in that list is
/// too small or far too large.
[[gnu::cold, gnu::noinline]] void* refill_span(std::size_t bytes, thread_cache* cache,
                                               bool* zero) noexcept
{
    if (cache->is_decoy())
        if (thread_cache* const own = cache->real != nullptr ? cache->real : own_cache()) {
            if (cache == &watching_thread_cache)
                spend_credit(*own, credit_of_span);
            void* const sampled = sample(shown_cache(), bytes, 1, zero);
            return sampled != nullptr ? sampled : allocate_span(bytes, own, zero);
        }
    bool is_zero = false;
    void* const block = retry_after_flush([&] {
        return with_cache(cache, [&](thread_cache& own) {
            busy_scope const busy(own);
            tick(own);
            make_room_for_span(own, bytes);
            return take_span(own, bytes, is_zero);
        });
    });
    if (zero != nullptr)
        *zero = is_zero;
    return block;
}

} // namespace

void* refill(std::size_t bytes, class_offset offset, thread_cache* cache) noexcept
{
    cache->list_at(offset).room -= 1; // undoes the change by `pop`
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

void* allocate_large(std::size_t bytes, std::size_t align, bool* zero) noexcept
{
    if (bytes > bytes_max)
        return os::out_of_memory();
    void* const sampled = sample(shown_cache(), bytes, align, zero);
    return sampled != nullptr ? sampled : take_large(bytes, align, zero);
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
            thread_cache* const own = real_cache();
            block = own == nullptr || own->list_at(offset).head != nullptr
                        ? pop(own == nullptr ? cache : own, offset)
                        : retry_after_flush([&] { return take_span(*own, bytes, zero); });
        }
    }
    if (block != nullptr && !zero)
        std::memset(block, 0, bytes);
    return block;
}

// --- free ------------------------------------------------------------------------------

namespace {

/// Frees a span immediately, no matter which thread owns it. The owner need not be informed,
/// because the span contains no other block.
void free_span(found_block const& b) noexcept
{
    if (!b.in->change(b.slice, b.what, 0))
        stop_at_double_free(b.of->start, "free");
    the_slice_heap.give_of_class(*b.in, b.slice);
    watch_if_idle();
}

} // namespace

void free_rare(void* block, thread_cache* cache) noexcept
{
    if (block == nullptr)
        return;
    found_block const b = find_block(block, "free");
    if (b.is_of_heap()) [[unlikely]]
        return free_of_heap(b, block);
    if (b.of == nullptr) {
        if (b.what == entry_sampled)
            return free_sample(b);
        if (!free_large(block))
            stop_at_foreign(block, "free");
        return watch_if_idle();
    }
    bool const is_own = owner_of(b.what ^ cache->tag) == 0;
    if (b.is_span() && !is_own)
        return free_span(b);
    if (cache->is_decoy()) {
        // Look the block up again with this thread's own cache, because `own_cache` may just have
        // reclaimed an abandoned cache, and that cache may own the block.
        thread_cache* const own = own_cache();
        return own != nullptr ? free_elsewhere(block, own) : send_block(*b.of, block);
    }
    if (is_own)
        return push(block, cache, offset_in(b.what));
    free_past_list(block, *cache);
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

// --- resizing ----------------------------------------------------------------------------

namespace {

/// Moves a block to a new block of `bytes` bytes. If there is no memory and the block is to shrink,
/// leaves the block where it is.
void* move_block(void* block, std::size_t bytes_now, std::size_t bytes) noexcept
{
    bool zero = false;
    void* const fresh = bytes > block_bytes_max     ? allocate_large(bytes, slice_bytes, &zero)
                        : bytes > classed_bytes_max ? allocate_span(bytes, shown_cache(), &zero)
                                                    : allocate(bytes);
    if (fresh == nullptr)
        return bytes <= bytes_now ? block : nullptr;
    move_contents(fresh, block, std::min(bytes_now, bytes), zero);
    deallocate(block);
    return fresh;
}

/// Resizes a sampled block. The block moves if it grows, or if it shrinks to less than half. The
/// new block is sampled with the same probability as every allocation.
void* reallocate_sample(found_block const& b, void* block, std::size_t bytes) noexcept
{
    std::size_t const now = sample_bytes(b);
    if (bytes > now || bytes < now / 2)
        return move_block(block, now, bytes);
    resize_sample(b, bytes);
    return block;
}

/// Makes a span larger or smaller in place. Returns false if the slices after the span are not
/// free.
bool resize_span(thread_cache& cache, found_block const& b, std::size_t bytes) noexcept
{
    std::size_t const index = block_class::of(bytes);
    std::size_t const slices = index < classed_count ? shapes[index].slices : slices_for(bytes);
    slab& s = *b.of;
    // If several threads free or resize the span at the same time, only one of them succeeds in
    // changing its map entry.
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

} // namespace

void* reallocate(void* block, std::size_t bytes) noexcept
{
    found_block const b = find_block(block, "realloc");
    if (b.is_of_heap()) [[unlikely]]
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
        return same != nullptr ? same : move_block(block, now, bytes);
    }
    std::size_t const now = b.of->usable_bytes();
    if (bytes <= now && (now <= classed_bytes_max ? bytes >= now / 2 : now - bytes < slice_bytes))
        return block;
    if (b.is_span() && bytes >= slice_bytes && bytes <= block_bytes_max)
        if (thread_cache* const own = real_cache(); own != nullptr && resize_span(*own, b, bytes))
            return block;
    return move_block(block, now, bytes);
}

std::size_t usable_bytes(const void* block, const char* call) noexcept
{
    found_block const b = find_block(block, call);
    if (b.of != nullptr)
        return b.of->usable_bytes();
    std::size_t const bytes = b.what == entry_sampled ? sample_bytes(b) : large_bytes(block);
    if (bytes == 0)
        stop_at_foreign(block, call);
    return bytes;
}

} // namespace mallard::engine
