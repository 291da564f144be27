// The functions of heaps. A heap is a thread cache without a thread (see heap.hpp).
#include "heap.hpp"

#include "cached_slabs.hpp"
#include "large.hpp"
#include "misuse.hpp"
#include "permanent_store.hpp"
#include "remote.hpp"
#include "threads.hpp"
#include "visit.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace mallard::engine {
namespace {

constinit os::lock heaps_lock;
// The variables below are protected by `heaps_lock`.
constinit permanent_store store;
constinit heap* unused = nullptr;
constinit std::atomic<heap*> newest{nullptr}; // other threads read this pointer without the lock
constinit entry numbers = 0;

// --- the cache policy of heaps ----------------------------------------------------------

span take_slices(thread_cache& cache, std::size_t, std::size_t slices) noexcept
{
    if (the_slice_heap.has_grown()) [[unlikely]]
        visit_threads(visited::idle);
    return take_of(static_cast<heap&>(cache), slices);
}

void give_slab_to_heap(thread_cache& owner, slab& s) noexcept
{
    give_to(static_cast<heap&>(owner), s);
}

slab* reclaim_nothing(thread_cache&, class_offset) noexcept
{
    return nullptr;
}

/// Sets the bump range of a class to those blocks of a slab that were never allocated. Allocates
/// and returns the first of these blocks.
void* begin_bump_range(thread_cache& cache, class_offset, slab_queue& queue) noexcept
{
    slab& s = *std::exchange(queue.fresh, nullptr);
    const class_shape& shape = s.shape();
    char* const start = reinterpret_cast<char*>(s.start);
    char* const first = start + std::size_t{s.carved} * shape.bytes;
    static_cast<heap&>(cache).fresh.of_class[s.index] = {
        first + shape.bytes, start + std::size_t{shape.capacity} * shape.bytes};
    s.used += shape.capacity - s.carved;
    s.carved = shape.capacity;
    clear(first);
    return first;
}

/// Returns true, because any change of list limits is allowed. The sum of the limits over all heaps
/// is not limited. Only `allowance_max` limits the lists of each heap.
bool allow_always(std::ptrdiff_t) noexcept
{
    return true;
}

/// Does nothing, because no other thread can use the free blocks of a heap.
void visit_never(thread_cache&, std::size_t) noexcept {}

constexpr cache_policy policy_of_heaps{.take_slices = take_slices,
                                       .give_slab = give_slab_to_heap,
                                       .reclaim_slab = reclaim_nothing,
                                       .carve = begin_bump_range,
                                       .change_allowances = allow_always,
                                       .after_message = visit_never};

// --- helpers of the functions below ------------------------------------------------------

[[gnu::cold]] heap* make_new() noexcept
{
    if (numbers == thread_owner_max - 1) // the last number belongs to the trap caches
        return nullptr;
    void* const room = store.allocate(sizeof(heap));
    if (room == nullptr)
        return nullptr;
    heap* const h = ::new (room) heap;
    h->real = h;
    h->policy = &policy_of_heaps;
    h->tag = heap_bit | ++numbers << owner_shift;
    h->key = key_of_process();
    empty_lists(*h);
    h->next_of_all = newest.load(std::memory_order_relaxed);
    newest.store(h, std::memory_order_release);
    return h;
}

/// Sets a member to its initial value, all bytes zero. A loop over the elements of an array would
/// take four times as long.
template <class T>
    requires std::is_trivially_copyable_v<T>
void set_to_zero(T& all) noexcept
{
    std::memset(static_cast<void*>(&all), 0, sizeof all);
}

/// Empties the lists, queues and inbox without reading blocks.
void forget_blocks(heap& h) noexcept
{
    empty_lists(h);
    set_to_zero(h.queues);
    set_to_zero(h.fresh.of_class);
    set_to_zero(h.deferred);
    set_to_zero(h.overflows);
    set_to_zero(h.allowance);
    h.messages = nullptr;
    h.inbox.store(nullptr, std::memory_order_relaxed);
    h.waiting.store(0, std::memory_order_relaxed);
}

/// A scope in which this thread may use the lists of a heap. The constructor locks a shared heap,
/// and stops the process if the heap is confined to another thread.
class heap_access {
public:
    explicit heap_access(heap& h) noexcept : heap_(h)
    {
        const void* const thread = thread_of(h).load(std::memory_order_relaxed);
        if (thread == nullptr)
            h.lock.take();
        else if (thread != this_thread())
            stop_at_confined(&h);
    }
    heap_access(const heap_access&) = delete;
    heap_access& operator=(const heap_access&) = delete;
    ~heap_access()
    {
        if (heap_.fresh.thread == nullptr)
            heap_.lock.give();
    }

private:
    heap& heap_;
};

void* allocate_with_access(heap& h, std::size_t bytes, std::size_t align, bool* zero) noexcept
{
    if (bytes > classed_bytes_max || align > slice_bytes)
        return allocate_large(h, bytes, align, zero);
    class_offset const offset = offset_of_aligned(bytes, align);
    void* const block =
        offset < offset_of_class(span_class_first) ? allocate_cached(h, offset) : nullptr;
    return block != nullptr ? block : pop(&h, offset);
}

/// Reads all messages (batches of remote frees). These are the messages that an earlier call has
/// removed from the inbox, and the messages that are still in the inbox.
void read_all_messages(heap& h) noexcept
{
    read_messages(h, ~std::size_t{0});
    read_messages(h, ~std::size_t{0});
}

/// Undoes `begin_bump_range`. From now on, the slab counts the blocks that are left in the range as
/// never allocated.
void end_bump_range(heap& h, std::size_t index) noexcept
{
    bump_range const left = std::exchange(h.fresh.of_class[index], {});
    if (bytes_of(left) == 0)
        return;
    slab& s = slab_of(left.next);
    auto const count = static_cast<std::uint32_t>(bytes_of(left) / s.shape().bytes);
    s.carved -= count;
    s.used -= count;
    // Another slab may have become `queues[index].fresh` since `begin_bump_range`. No block of that
    // slab was ever allocated, so return the slab.
    if (slab* const other = std::exchange(h.queues[index].fresh, &s))
        give_slab(*other);
    if (s.used == 0)
        settle(h, s);
}

heap& heap_of(found_block const& b) noexcept
{
    return static_cast<heap&>(*b.record().owner.load(std::memory_order_relaxed));
}

void push_own(heap& h, void* block, class_offset offset) noexcept
{
    push(block, &h, offset);
}

} // namespace

heap* all_heaps() noexcept
{
    return newest.load(std::memory_order_acquire);
}

heap* make_heap(bool shared) noexcept
{
    heap* h = nullptr;
    {
        os::hold const alone(heaps_lock);
        h = unused;
        if (h != nullptr)
            unused = h->next_unused;
        else
            h = make_new();
    }
    if (h == nullptr)
        return nullptr;
    h->next_unused = h;
    thread_of(*h).store(shared ? nullptr : this_thread(), std::memory_order_relaxed);
    return h;
}

void unmake(heap& h) noexcept
{
    if (h.next_unused != &h)
        stop_at_destroyed(&h);
    release(h);
    h.held_max.store(0, std::memory_order_relaxed);
    h.limit.set(0, 0, nullptr, nullptr);
    os::hold const alone(heaps_lock);
    h.next_unused = unused;
    unused = &h;
}

void* allocate_slowly(heap& h, std::size_t bytes, std::size_t align, bool* zero) noexcept
{
    auto const once = [&] {
        heap_access const allowed(h);
        return allocate_with_access(h, bytes, align, zero);
    };
    return within_limits([&] { return within_limits(h.limit, once); });
}

void* allocate_zeroed(heap& h, std::size_t bytes) noexcept
{
    bool zero = false;
    void* const block =
        bytes <= looked_up_max ? allocate(h, bytes) : allocate_slowly(h, bytes, 1, &zero);
    if (block != nullptr && !zero)
        std::memset(block, 0, bytes);
    return block;
}

void deallocate(heap& h, void* block) noexcept
{
    std::size_t const slice = reservations[0].slice_of(block);
    if (reservations[0].has(slice) && is_confined_to_caller(h)) {
        entry const e = reservations[0].entry_at(slice) ^ h.tag;
        if (is_class(e) && e < class_offset_end) [[likely]]
            return push(block, &h, e);
    }
    deallocate(block);
}

void free_of_heap(found_block const& b, void* block) noexcept
{
    heap& h = heap_of(b);
    if (b.of == nullptr) {
        // If two threads free the block at the same time, only one of them succeeds in changing its
        // map entry.
        if (!b.in->change(b.slice, b.what, inside_of(h.tag)))
            stop_at_double_free(block, "free");
        return free_large(h, *b.in, b.slice);
    }
    const void* const thread = thread_of(h).load(std::memory_order_relaxed);
    if (thread == this_thread())
        return push_own(h, block, offset_in(b.what));
    if (thread != nullptr || !h.lock.try_take())
        return send_block(*b.of, block);
    push_own(h, block, offset_in(b.what));
    h.lock.give();
}

void* reallocate_of_heap(found_block const& b, void* block, std::size_t bytes) noexcept
{
    heap& h = heap_of(b);
    slab& s = b.record();
    std::size_t const now = b.of != nullptr ? s.usable_bytes() : s.slices * slice_bytes;
    if (bytes <= now && bytes >= now / 2 && (b.of != nullptr || now - bytes < slice_bytes))
        return block;
    if (b.of == nullptr && resize_large(h, s, bytes))
        return block;
    // From a heap that is confined to another thread, this thread can allocate only large blocks.
    const void* const thread = thread_of(h).load(std::memory_order_relaxed);
    bool const may_use_lists = thread == nullptr || thread == this_thread();
    bool zero = false;
    void* const fresh = !may_use_lists           ? allocate_large(h, bytes, slice_bytes, &zero)
                        : bytes <= looked_up_max ? allocate(h, bytes)
                                                 : allocate_slowly(h, bytes, 1, &zero);
    if (fresh == nullptr)
        return bytes <= now ? block : nullptr;
    move_contents(fresh, block, std::min(now, bytes), zero);
    free_of_heap(b, block);
    return fresh;
}

void release(heap& h) noexcept
{
    free_all_large(h);
    if (h.chunks == no_chunk) // nothing was allocated since the last release
        return;
    free_chunks(h);
    forget_blocks(h);
}

void reset(heap& h) noexcept
{
    free_all_large(h);
    empty_chunks(h);
    forget_blocks(h);
}

void trim(heap& h, std::size_t keep) noexcept
{
    heap_access const allowed(h);
    for (std::size_t i = 0; i < span_class_first; ++i)
        end_bump_range(h, i);
    read_all_messages(h);
    flush(h);
    trim_chunks(h, keep);
}

bool owns(const heap& h, const void* p) noexcept
{
    reservation const* const in = reservation_of(p);
    return in != nullptr && owner_of(in->entry_at(in->slice_of(p)) ^ h.tag) == 0;
}

heap_numbers count(heap& h) noexcept
{
    heap_access const allowed(h);
    return_all_deferred(h);
    read_all_messages(h);
    heap_numbers n = count_chunks(h);
    for (std::size_t i = 0; i < class_count; ++i) {
        std::size_t const fresh = i < span_class_first ? bytes_of(h.fresh.of_class[i]) : 0;
        std::size_t const cached =
            static_cast<std::size_t>(h.lists[i].limit - h.lists[i].room) + fresh / shapes[i].bytes;
        n.blocks_live -= cached;
        n.bytes_live -= cached * shapes[i].usable_bytes();
    }
    os::hold const alone(h.large_lock);
    for (slab const* s = h.large; s != nullptr; s = s->next) {
        n.large_blocks += 1;
        n.blocks_live += 1;
        n.bytes_live += s->slices * slice_bytes;
    }
    return n;
}

void lock_heaps() noexcept
{
    heaps_lock.take();
    for (heap* h = all_heaps(); h != nullptr; h = h->next_of_all) {
        h->lock.take();
        h->large_lock.take();
    }
}

void unlock_heaps() noexcept
{
    for (heap* h = all_heaps(); h != nullptr; h = h->next_of_all) {
        h->large_lock.give();
        h->lock.give();
    }
    heaps_lock.give();
}

void reset_heaps() noexcept
{
    for (heap* h = all_heaps(); h != nullptr; h = h->next_of_all) {
        h->large_lock.reset();
        h->lock.reset();
        h->limit.forget_calling_thread();
    }
    heaps_lock.reset();
}

} // namespace mallard::engine
