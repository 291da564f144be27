// Where blocks go when a list of a front is full.
#include "front.hpp"

#include "central.hpp"
#include "epoch.hpp"
#include "heap.hpp"
#include "misuse.hpp"
#include "park.hpp"
#include "remote.hpp"

#include <algorithm>
#include <utility>

namespace mallard::engine {

void list_it(slab_queue& q, slab& s) noexcept
{
    s.listed = true;
    s.previous = nullptr;
    s.next = q.partial;
    if (q.partial != nullptr)
        q.partial->previous = &s;
    q.partial = &s;
}

void unlist(slab_queue& q, slab& s) noexcept
{
    s.listed = false;
    (s.previous != nullptr ? s.previous->next : q.partial) = s.next;
    if (s.next != nullptr)
        s.next->previous = s.previous;
}

void give_slab(slab& s) noexcept
{
    front& f = *s.owner.load(std::memory_order_relaxed);
    if (is_heaps(f.tag))
        return give_to(static_cast<heap&>(f), s);
    window& w = *window_of(s.start);
    the_central.give_of_class(w, w.granule_of(s.start));
}

void settle(front& f, slab& s) noexcept
{
    slab_queue& q = f.queues[s.index];
    if (s.used != 0) {
        if (!s.listed)
            list_it(q, s);
        return;
    }
    if (s.listed)
        unlist(q, s);
    s.free = nullptr;
    s.carved = 0;
    if (q.fresh == nullptr)
        q.fresh = &s;
    else if (q.fresh != &s)
        give_slab(s);
}

namespace {

[[gnu::always_inline]] inline void give_to_slab(front& f, slab& s, void* block,
                                                std::uint64_t mark) noexcept
{
    link(block, s.free, mark);
    s.free = block;
    s.used -= 1;
    if (s.used == 0 || !s.listed) [[unlikely]]
        settle(f, s);
}

/// To its slab; or into a parcel, if that is another front's.
[[gnu::always_inline]] inline void bring_back(front& f, void* block) noexcept
{
    slab& s = slab_of(block);
    if (!s.shape().begins(s.offset_of(block))) [[unlikely]]
        stop_at_interior(block, "free");
    std::uint64_t const mark = mark_for(block, f.key);
    if (is_free(block, mark)) [[unlikely]]
        stop_at_freed_twice(block);
    if (s.owner.load(std::memory_order_relaxed) != &f) [[unlikely]]
        return collect(f, s, block);
    give_to_slab(f, s, block, mark);
}

} // namespace

void give_back(front& f, void* block) noexcept
{
    slab& s = slab_of(block);
    if (s.index >= run_class_first)
        return give_slab(s);
    // `push` has seen that the block is aligned, which is not enough in most classes.
    if (!s.shape().begins(s.offset_of(block))) [[unlikely]]
        stop_at_interior(block, "free");
    give_to_slab(f, s, block, mark_for(block, f.key));
}

void bring_back_blocks(front& f) noexcept
{
    std::uint32_t const count = std::exchange(f.back.count, 0);
    for (std::uint32_t i = 0; i < count; ++i)
        bring_back(f, f.back.blocks[i]);
}

void show_list(front& f, std::size_t index) noexcept
{
    list& l = f.lists[index];
    if (!l.is_hidden())
        return;
    l.head = std::exchange(f.back.hidden[index], nullptr);
    l.room += list::hidden_by;
}

void free_past_list(void* block, front& f) noexcept
{
    at_work const here(f);
    pass(f);
    slab& s = slab_of(block);
    if (s.index < run_class_first)
        return bring_back(f, block);
    if (block != s.start)
        stop_at_interior(block, "free");
    if (is_free(block, mark_for(block, f.key)))
        stop_at_freed_twice(block);
    give_slab(s);
}

void bring_back(front& f) noexcept
{
    bring_back_blocks(f);
    for (std::size_t i = 0; i < put_off_classes; ++i)
        show_list(f, i);
}

namespace {

/// Of a list that is hidden, if it is.
void give_up(front& f, std::size_t index, std::size_t count) noexcept
{
    void*& head = f.back.hidden[index];
    for (; head != nullptr && count != 0; --count) {
        void* const block = std::exchange(head, next_of(head, f.key));
        f.lists[index].room += 1;
        give_back(f, block);
    }
}

} // namespace

void come_back(front& f) noexcept
{
    at_work const here(f);
    pass(f);
    // Now of one class, now of another: who frees several has several hidden lists.
    std::uint32_t const one = f.slow_paths.load(std::memory_order_relaxed) % returns::most;
    std::size_t const index = slab_of(f.back.blocks[one]).index;
    bring_back_blocks(f);
    give_up(f, index, returns::most);
}

namespace {

void count_overflow(front& f, std::size_t index) noexcept
{
    std::uint16_t& overflows = f.overflows[index];
    overflows = static_cast<std::uint16_t>(overflows + (overflows != 0xffff));
    f.back.in_a_row += 1;
}

/// What stands before a front is always full.
[[gnu::noinline]] void push_behind(void* block, front& f, code c) noexcept
{
    push(block, f.real, c);
}

/// Of a list that is not hidden. After several in a row it will be.
[[gnu::noinline]] void overflow_shown(void* block, front& f, code c) noexcept
{
    list& l = f.list_of(c);
    l.room = 0;
    if (f.is_none()) [[unlikely]]
        return push_behind(block, f, c);
    std::size_t const index = class_of_code(c);
    count_overflow(f, index);
    if (index >= classed_count)
        f.overflows[index] = static_cast<std::uint16_t>(slab_of(block).granules);
    if (index >= put_off_classes || f.back.in_a_row <= returns::at_once)
        return free_past_list(block, f);
    {
        at_work const here(f); // a visitor may take what is hidden
        l.room -= list::hidden_by;
        f.back.hidden[index] = std::exchange(l.head, nullptr);
    }
    put_off(f, block);
}

} // namespace

// Most of a large number of frees come by here: as short as it can be.
void overflow(void* block, front* f, code c) noexcept
{
    list& l = f->list_of(c);
    if (!l.is_hidden()) [[unlikely]]
        return overflow_shown(block, *f, c);
    l.room += 1; // as it was
    count_overflow(*f, class_of_code(c));
    put_off(*f, block);
}

void change_allowance(front& f, const class_shape& shape, int blocks) noexcept
{
    std::size_t& allowance = f.allowance[shape.is_classed() ? 0 : 1];
    std::size_t const change =
        shape.bytes * static_cast<std::size_t>(blocks < 0 ? -blocks : blocks);
    std::size_t const next =
        blocks < 0 ? allowance - std::min(allowance, change) : allowance + change;
    if (!is_heaps(f.tag))
        os::add(allowances, next - allowance);
    allowance = next;
}

void shrink(front& f, std::size_t index, std::size_t keep) noexcept
{
    list& l = f.lists[index];
    const class_shape& shape = shapes[index];
    while (static_cast<std::size_t>(l.limit - l.room) > keep)
        give_back(f, pop(&f, code_of_class(index)));
    int const less =
        l.limit -
        static_cast<int>(std::max<std::size_t>(keep, index < run_class_first ? shape.limit : 0));
    if (less <= 0)
        return;
    l.limit = static_cast<std::uint16_t>(l.limit - less);
    l.room -= less;
    change_allowance(f, shape, -less);
}

void shrink_idle(front& f) noexcept
{
    for (std::size_t i = 0; i < class_count; ++i) {
        list& l = f.lists[i];
        bool const was_refilled = i < classed_count && (f.refilled >> i & 1) != 0;
        if (!was_refilled && l.limit != 0)
            shrink(f, i, static_cast<std::size_t>(l.limit - l.room) / 2);
        if (i < run_class_first) {
            slab_queue& q = f.queues[i];
            if (q.fresh != nullptr && q.fresh->used == 0 && l.head == nullptr)
                give_slab(*std::exchange(q.fresh, nullptr));
        }
    }
    f.refilled = 0;
}

void stop_at_freed_inside(void* block) noexcept
{
    stop_at_interior(block, "free");
}
void stop_at_freed_twice(void* block) noexcept
{
    stop_at_double_free(block, "free");
}

} // namespace mallard::engine
