#include "requests.hpp"

#include "central.hpp"
#include "epoch.hpp"
#include "heap.hpp"
#include "large.hpp"
#include "limits.hpp"
#include "misuse.hpp"
#include "park.hpp"
#include "remote.hpp"
#include "sample.hpp"

#include <algorithm>
#include <cstring>

namespace mallard::engine {
namespace {

[[noreturn]] void stop_at(const void* p, entry e, const char* call) noexcept
{
    if (e == 0 || code_of(e) == entry_unused)
        stop_at_foreign(p, call);
    stop_at_interior(p, call);
}

} // namespace

found find(const void* p, const char* call) noexcept
{
    window* const w = window_of(p);
    if (w == nullptr)
        return {nullptr, 0, entry_large, nullptr};
    std::size_t const g = w->granule_of(p);
    entry const e = w->entry_at(g);
    if ((code_of(e) == entry_large || e == entry_sampled) && w->address_of(g) == p)
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

/// A run is free at once, whoever frees it: nothing else is in it.
void free_run(found const& f) noexcept
{
    if (!f.in->change(f.granule, f.what, 0))
        stop_at_double_free(f.of->start, "free");
    the_central.give_of_class(*f.in, f.granule);
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

/// A run becomes one of another class where it is; false: the granules after it are taken.
bool resize_run(front& f, found const& b, std::size_t bytes) noexcept
{
    std::size_t const index = block_class::of(bytes);
    std::size_t const granules =
        index < classed_count ? shapes[index].granules : granules_for(bytes);
    slab& s = *b.of;
    // Of those who free or resize it at once, one finds it.
    if (!b.in->change(b.granule, b.what, entry_inside))
        stop_at_double_free(s.start, "realloc");
    if (granules < s.granules) {
        the_central.give(*b.in, b.granule + granules, s.granules - granules);
    } else if (granules > s.granules) {
        bool zero = false;
        if (!the_central.extend(*b.in, b.granule, s.granules, granules - s.granules, zero)) {
            b.in->mark(b.granule, 1, b.what);
            return false;
        }
        b.in->mark(b.granule + s.granules, granules - s.granules, entry_inside);
    }
    s.granules = static_cast<std::uint32_t>(granules);
    s.index = static_cast<std::uint8_t>(index);
    s.owner.store(&f, std::memory_order_relaxed);
    b.in->mark(b.granule, 1, entry_of(f.tag, code_of_class(index)));
    return true;
}

/// A small block of a thread's slab.
bool is_anothers(const void* block) noexcept
{
    std::size_t const g = windows[0].granule_of(block);
    if (!windows[0].has(g))
        return false;
    entry const e = windows[0].entry_at(g);
    return (e & (heap_bit | (code_end - 1))) - code_of_class(0) < put_off_classes * code_unit;
}

/// What is neither in the first window nor small, or is nothing; or the thread has no front.
[[gnu::noinline]] void free_rare(void* block, front* f) noexcept
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
    if (b.is_run() && owner_of(b.what ^ f->tag) != 0)
        return free_run(b);
    // With a front it is looked at anew: that one may have been parked, and its slabs
    // others' by the time that it was taken.
    if (f->is_none()) {
        front* const own = own_front();
        return own != nullptr ? free_elsewhere(block, own) : send_one(*b.of, block);
    }
    if (owner_of(b.what ^ f->tag) == 0)
        return push(block, f, code_of(b.what));
    free_past_list(block, *f);
}

} // namespace

void free_elsewhere(void* block, front* f) noexcept
{
    if (f->is_none() || !is_anothers(block)) [[unlikely]]
        return free_rare(block, f);
    if (++f->back.in_a_row <= returns::at_once)
        return free_past_list(block, *f);
    put_off(*f, block);
}

void* allocate_aligned_rare(std::size_t bytes, std::size_t align) noexcept
{
    if (align <= 16)
        return allocate(bytes);
    if (bytes > block_bytes_max || align > granule_bytes)
        return allocate_large(bytes, align);
    if (bytes > classed_bytes_max)
        return allocate_run(bytes, shown_front());
    return pop(shown_front(), code_of_aligned(bytes, align), bytes);
}

void* allocate_zeroed(std::size_t bytes) noexcept
{
    bool zero = false;
    void* block = nullptr;
    if (bytes > block_bytes_max) {
        block = allocate_large(bytes, granule_bytes, &zero);
    } else if (bytes < granule_bytes) {
        block = allocate(bytes);
    } else if (bytes > classed_bytes_max) {
        block = allocate_run(bytes, shown_front(), &zero);
    } else {
        code const c = code_of_class(block_class::of(bytes));
        front* const f = shown_front();
        block = sample(f, bytes, 1, &zero);
        if (block == nullptr) {
            front* const own = shown_front()->real;
            block = own == nullptr || own->list_of(c).head != nullptr
                        ? pop(own == nullptr ? f : own, c)
                        : insist([&] { return run_for(*own, bytes, zero); });
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
        if (bytes > now / 2 && bytes <= now && now - bytes < granule_bytes)
            return block;
        void* const same = resize_large(block, bytes);
        return same != nullptr ? same : grow_elsewhere(block, now, bytes);
    }
    std::size_t const now = b.of->usable_bytes();
    if (bytes <= now && (now <= classed_bytes_max ? bytes >= now / 2 : now - bytes < granule_bytes))
        return block;
    front* const own = shown_front()->real;
    if (b.is_run() && bytes >= granule_bytes && bytes <= block_bytes_max && own != nullptr &&
        resize_run(*own, b, bytes))
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
    bool const is_small = there < granule_bytes;
    if (bytes > there || (bytes < granule_bytes && !is_small && there / 4 > bytes))
        stop_at_wrong_size(block, bytes, there);
    deallocate(block);
}

} // namespace mallard::engine
