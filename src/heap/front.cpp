// Where blocks come from when a list of a front is empty.
#include "front.hpp"

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
#include <utility>

namespace mallard::engine {

constinit front no_front;
constinit front departed_front;
constinit front visited_front;
constinit std::atomic<std::size_t> allowances{0};
constinit thread_local std::atomic<front*> my_front{&no_front};

namespace {

constexpr std::int32_t handed_over_least = 32;
constexpr std::size_t allowance_max[] = {std::size_t{2} << 20, std::size_t{32} << 20};

/// A list that got blocks takes as many back: they are no more memory than before.
void add(list& l, std::size_t count) noexcept
{
    l.room -= static_cast<std::int32_t>(count);
    if (l.room < 0) {
        l.limit = static_cast<std::uint16_t>(l.limit - l.room);
        l.room = 0;
    }
}

/// Of a list that is empty.
void set_limit(front& f, list& l, const class_shape& shape, std::size_t limit) noexcept
{
    int const more = static_cast<int>(limit) - l.limit;
    change_allowance(f, shape, more);
    l.room += more;
    l.limit = static_cast<std::uint16_t>(limit);
}

void lengthen(front& f, list& l, const class_shape& shape, std::size_t more) noexcept
{
    std::size_t const kind = shape.is_classed() ? 0 : 1;
    if (l.limit + more > shape.limit_max ||
        f.allowance[kind] + more * shape.bytes > allowance_max[kind])
        return;
    if (is_heaps(f.tag) ||
        allowances.load(std::memory_order_relaxed) + more * shape.bytes <= allowances_max)
        set_limit(f, l, shape, l.limit + more);
    else
        visit_threads_soon();
}

/// Whoever frees more than its list holds and then wants them again gets a list twice as
/// long, as far as the allowance of the front reaches. But more than any list holds are
/// better off in their slabs: a few that were kept of each would keep them all from coming
/// back whole.
void adapt(front& f, list& l, std::size_t index) noexcept
{
    const class_shape& shape = shapes[index];
    if (index < classed_count)
        f.refilled |= std::uint64_t{1} << index;
    std::uint32_t const overflows = std::exchange(f.overflows[index], 0);
    if (overflows == 0)
        return;
    if (overflows > shape.limit_max)
        return set_limit(f, l, shape, std::max<std::size_t>(shape.limit, l.limit / 2));
    lengthen(f, l, shape, shape.capacity == 1 ? 1 : l.limit);
}

/// All of a slab's free blocks, before those that are in the list.
void hand_over(front& f, list& l, slab& s) noexcept
{
    unlist(f.queues[s.index], s);
    std::uint32_t const count = s.carved - s.used;
    if (l.head != nullptr) {
        void* last = s.free;
        for (std::uint32_t i = 1; i < count; ++i)
            last = next_of(last, f.key);
        link(last, l.head, mark_for(last, f.key));
    }
    add(l, count);
    s.used = s.carved;
    l.head = s.free;
    s.free = nullptr;
}

/// A page's worth of blocks that were never given out, until half the slab is in use;
/// then what is left. The first is for the caller.
void* carve(front& f, code c, slab_queue& q) noexcept
{
    slab& s = *q.fresh;
    if (is_heaps(f.tag)) {
        q.fresh = nullptr;
        return begin_stretch(static_cast<heap&>(f), s);
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
    list& l = f.list_of(c);
    void* const rest = l.head;
    for (std::uint32_t i = 1; i < count; ++i) { // upwards, as processors foresee it
        std::byte* const block = first + std::size_t{i} * shape.bytes;
        link(block, i + 1 == count ? rest : block + shape.bytes, mark_for(block, f.key));
    }
    if (count > 1)
        l.head = first + shape.bytes;
    add(l, count - 1);
    clear(first);
    return first;
}

run take_granules(front& f, std::size_t index, std::size_t granules) noexcept
{
    if (the_central.has_grown()) [[unlikely]]
        visit_threads(visits::of_idle);
    if (is_heaps(f.tag))
        return take_of(static_cast<heap&>(f), granules);
    return index < classed_count ? the_central.take_of_class(index) : the_central.take(granules);
}

/// One that belongs to nobody yet becomes one of this class and front, without a block.
slab& begin_slab(front& f, std::size_t index, std::size_t granules, run const& r) noexcept
{
    slab& s = r.record();
    s.owner.store(&f, std::memory_order_relaxed);
    s.free = nullptr;
    s.used = s.carved = 0;
    s.listed = false;
    if (!r.again) {
        s.start = r.start();
        s.granules = static_cast<std::uint32_t>(granules);
        s.index = static_cast<std::uint8_t>(index);
        std::uint32_t const with_blocks = index < run_class_first ? s.granules : 1;
        for (std::uint32_t i = 0; i < with_blocks; ++i)
            r.in->slabs[r.granule + i].back = i;
    }
    return s;
}

bool take_slab(front& f, code c, slab_queue& q) noexcept
{
    std::size_t const index = class_of_code(c);
    std::size_t const granules = shapes[index].granules;
    run const r = take_granules(f, index, granules);
    if (r.in == nullptr)
        return false;
    q.fresh = &begin_slab(f, index, granules, r);
    r.in->mark(r.granule, granules, entry_of(f.tag, c));
    return true;
}

} // namespace

void mark_fronts_of_none() noexcept
{
    for (front* const f : {&no_front, &departed_front, &visited_front})
        f->tag = tag_of_none;
}

void* run_for(front& f, std::size_t bytes, bool& zero) noexcept
{
    std::size_t const index = block_class::of(bytes);
    std::size_t const granules =
        index < classed_count ? shapes[index].granules : granules_for(bytes);
    run const r = take_granules(f, index, granules);
    if (r.in == nullptr)
        return nullptr;
    slab& s = begin_slab(f, index, granules, r);
    s.used = s.carved = 1;
    r.in->mark(r.granule, 1, entry_of(f.tag, code_of_class(index)));
    if (!r.again)
        r.in->mark(r.granule + 1, s.granules - 1, inside_of(f.tag));
    zero = r.zero;
    if (!zero)
        clear(s.start);
    return s.start;
}

void* refill_in(front& f, code c) noexcept
{
    pass(f);
    std::size_t const index = class_of_code(c);
    bring_back_blocks(f);
    f.back.in_a_row = 0;
    if (index < put_off_classes)
        show_list(f, index);
    if (f.list_of(c).head != nullptr)
        return pop(&f, c);
    adapt(f, f.list_of(c), index);
    if (index >= run_class_first) {
        bool zero = false;
        return run_for(f, shapes[index].bytes, zero);
    }
    read_letters(f);
    slab_queue& q = f.queues[index];
    if (q.partial == nullptr) {
        if (q.fresh != nullptr || is_heaps(f.tag) || adopt_slab(f, c, q) == nullptr) {
            if (q.fresh == nullptr && !take_slab(f, c, q))
                return nullptr;
            return carve(f, c, q);
        }
    }
    // Slabs with a block or two are as many slow paths: several at once; but no more than
    // stay near until they are used.
    list& l = f.list_of(c);
    do
        hand_over(f, l, *q.partial);
    while (q.partial != nullptr && l.limit - l.room < handed_over_least);
    return pop(&f, c);
}

namespace {

/// Of a thread that has no front yet, or no longer, or is sampled.
[[gnu::noinline]] void* refill_none(std::size_t bytes, code c, front* f) noexcept
{
    if (front* const own = f->real != nullptr ? f->real : own_front()) {
        void* const chosen = sample(shown_front(), bytes, 1, nullptr);
        return chosen != nullptr ? chosen : pop(own, c);
    }
    return insist([=] { return with_front(f, [c](front& late) { return pop(&late, c); }); });
}

} // namespace

void* refill(std::size_t bytes, code c, front* f) noexcept
{
    f->list_of(c).room -= 1; // nothing was taken
    if (f->is_none()) [[unlikely]]
        return refill_none(bytes, c, f);
    return insist([=] {
        at_work const here(*f);
        return refill_in(*f, c);
    });
}

void* allocate_above(std::size_t bytes, front* f) noexcept
{
    if (bytes > classed_bytes_max) [[unlikely]]
        return bytes > block_bytes_max ? allocate_large(bytes, granule_bytes)
                                       : allocate_run(bytes, f);
    return pop(f, code_of_class(block_class::of(bytes)), bytes);
}

namespace {

/// Returns the runs of other sizes in the lists to central, so that the process does not grow. A
/// list of runs serves one size that is requested again and again.
[[gnu::cold]] void make_room_for_run(front& f, std::size_t bytes) noexcept
{
    std::size_t const index = block_class::of(bytes);
    std::size_t const needed = granules_for(bytes);
    list& l = f.lists[index];
    bool const comes_again = std::exchange(f.overflows[index], 0) == needed;
    if (l.head != nullptr)
        shrink(f, index, 0);
    for (std::size_t i = class_count; i-- != classed_count;)
        if (f.lists[i].head != nullptr && the_central.now().dirty < needed)
            give_back(f, pop(&f, code_of_class(i)));
    if (!comes_again)
        return;
    if (f.allowance[1] + shapes[index].bytes > allowance_max[1])
        for (std::size_t i = classed_count; i < class_count; ++i)
            shrink(f, i, 0); // these are not wanted now
    lengthen(f, l, shapes[index], 1);
}

/// Allocates a run when the list's block is too small, or so large that it would be a waste.
[[gnu::cold, gnu::noinline]] void* refill_run(std::size_t bytes, front* f, bool* zero) noexcept
{
    if (f->is_none())
        if (front* const own = f->real != nullptr ? f->real : own_front()) {
            void* const chosen = sample(shown_front(), bytes, 1, zero);
            return chosen != nullptr ? chosen : allocate_run(bytes, own, zero);
        }
    bool is_zero = false;
    void* const block = insist([&] {
        return with_front(f, [&](front& own) {
            at_work const here(own);
            pass(own);
            make_room_for_run(own, bytes);
            return run_for(own, bytes, is_zero);
        });
    });
    if (zero != nullptr)
        *zero = is_zero;
    return block;
}

} // namespace

void* allocate_run(std::size_t bytes, front* f, bool* zero) noexcept
{
    code const c = code_of_class(block_class::of(bytes));
    std::size_t const needed = granules_for(bytes);
    if (void* const block = head_of(f->list_of(c)).load(std::memory_order_relaxed)) {
        std::size_t const there = slab_of(block).granules;
        if (there >= needed && there - needed <= needed / 8) [[likely]]
            return pop(f, c, bytes);
    }
    return refill_run(bytes, f, zero);
}

} // namespace mallard::engine
