// Visits return the free blocks of idle threads while these threads sleep.
//
// In every call a thread uses the lists of its own front without a lock, and no other thread uses
// them. A visitor, a thread that wants the blocks, can still take these lists, and only the slow
// paths of the visited thread pay for that:
//
//   1. The visitor shows the thread `visited_front`, whose lists are empty, in place of its own
//      front, and marks the front as wanted. All threads pass a barrier. From now on the thread
//      begins no operation on its lists before `come_home`, which waits for the visitor. Only an
//      operation that was interrupted in the middle can still go on.
//   2. The visitor takes the heads of all lists. All threads pass a barrier again.
//   3. An operation changes `room` first, then reads the head. Suppose that the operation has read
//      a head before the visitor took that head. Then the visitor now sees that `room` plus the
//      number of blocks is not `limit`, or that the list has a head again. Such a list is in doubt,
//      and its thread decides in `come_home`. All other lists belong to the visitor. (If the system
//      refuses the second barrier, the blocks taken belong to no thread.)
//
// tests/models/engine_lists.pml models this protocol for Spin.
#include "park.hpp"

#include "central.hpp"
#include "fork.hpp"
#include "remote.hpp"

#include <algorithm>
#include <utility>

namespace mallard::engine {
namespace {

constexpr std::size_t fronts_at_once = 64; // then the lock is released for a moment

/// Reads a value that its thread may be changing.
template <class T>
[[gnu::no_sanitize_thread, gnu::noinline]] T glance(const T& value) noexcept
{
    return *const_cast<const volatile T*>(&value);
}

/// Counts the blocks of a list that the caller owns.
std::size_t length(const void* block, std::uint64_t key) noexcept
{
    std::size_t count = 0;
    for (; block != nullptr; block = next_of(block, key))
        count += 1;
    return count;
}

/// Counts the blocks of a list whose first block may be in use by now; at most one too many.
std::size_t length_if_free(const void* block, std::size_t most, std::uint64_t key) noexcept
{
    std::size_t count = 0;
    while (block != nullptr && count <= most) {
        auto const& now = *static_cast<const free_block*>(block);
        void* const next = glance(now.next);
        if ((glance(now.guarded) ^ mark_for(block, key)) != reinterpret_cast<std::uintptr_t>(next))
            return count;
        block = next;
        count += 1;
    }
    return count;
}

void give_back_all(front& f, void* block) noexcept
{
    while (block != nullptr)
        give_back(f, std::exchange(block, next_of(block, f.key)));
}

/// Takes the heads of all lists that are not hidden. False: all of them are empty.
bool take_heads(front& f, void** heads) noexcept
{
    bool any = false;
    for (std::size_t i = 0; i < class_count; ++i) {
        list& l = f.lists[i];
        heads[i] =
            list::is_hidden(glance(l.room)) || head_of(l).load(std::memory_order_relaxed) == nullptr
                ? nullptr
                : head_of(l).exchange(nullptr, std::memory_order_acq_rel);
        any |= heads[i] != nullptr;
    }
    return any;
}

/// Whether the thread has lost the list: no operation read the head before the visitor took it.
bool is_lost(list& l, const void* taken, std::uint64_t key) noexcept
{
    std::size_t const count = length_if_free(taken, l.limit, key);
    return count != 0 && head_of(l).load(std::memory_order_relaxed) == nullptr &&
           glance(l.room) + static_cast<std::int32_t>(count) == l.limit;
}

void empty_taken(front& f, std::size_t index, void* taken) noexcept
{
    if (is_lost(f.lists[index], taken, f.key)) {
        give_back_all(f, taken);
    } else {
        f.in_doubt = taken; // at most one list: only one operation can be under way
        f.in_doubt_index = static_cast<std::uint32_t>(index);
    }
}

void empty_lists_of_visited(front& f) noexcept
{
    void* heads[class_count];
    if (take_heads(f, heads) && os::barrier_in_all_threads())
        for (std::size_t i = 0; i < class_count; ++i)
            if (heads[i] != nullptr)
                empty_taken(f, i, heads[i]);
    if (glance(f.back.count) != 0) // one of the deferred blocks may have been freed twice
        return;
    for (std::size_t i = 0; i < put_off_classes; ++i)
        if (list::is_hidden(glance(f.lists[i].room)))
            give_back_all(f, std::exchange(f.back.hidden[i], nullptr));
}

/// Empties a front whose thread waits for the caller before it uses the front.
void empty_visited(front& f) noexcept
{
    empty_lists_of_visited(f);
    send_all(f);
    read_letters(f, ~std::size_t{0});
    for (slab_queue& q : f.queues)
        if (q.fresh != nullptr && q.fresh->used == 0)
            give_slab(*std::exchange(q.fresh, nullptr));
    os::add(allowances, ~(f.allowance[0] + f.allowance[1]) + 1);
    f.allowance[0] = f.allowance[1] = 0;
}

bool is_away(const front& f) noexcept
{
    return f.wanted.load(std::memory_order_relaxed) != 0;
}

bool is_to_be_visited(front& f, visits which) noexcept
{
    // Skip fronts without a thread, and the caller's own.
    if (f.shown_at == nullptr || f.shown_at == &my_front || is_away(f))
        return false;
    std::uint32_t const passed = f.slow_paths.load(std::memory_order_relaxed);
    return std::exchange(f.slow_paths_seen, passed) == passed || which == visits::of_all;
}

void show_home(front& f) noexcept
{
    f.wanted.store(0, std::memory_order_release);
    if (f.shown_at != nullptr)
        *f.shown_at = front_to_show(f);
}

/// Visits the next fronts from `f` on; returns where to continue.
front* visit_some(front* f, visits which) noexcept
{
    front* these[fronts_at_once];
    std::size_t count = 0;
    for (; f != nullptr && count < fronts_at_once; f = f->next_of_all) {
        if (!is_to_be_visited(*f, which))
            continue;
        these[count++] = f;
        *f->shown_at = &visited_front;
        f->wanted.store(1, std::memory_order_relaxed);
    }
    bool const is_settled = count == 0 || os::barrier_in_all_threads();
    for (std::size_t i = 0; i < count; ++i) {
        front& each = *these[i];
        if (is_settled && each.busy.load(std::memory_order_acquire) == 0)
            empty_visited(each);
        else
            show_home(each);
    }
    return f;
}

/// Puts the blocks of a list in doubt back if `room` shows that the list misses them.
void settle_doubt(front& f) noexcept
{
    void* const taken = std::exchange(f.in_doubt, nullptr);
    if (taken == nullptr)
        return;
    list& l = f.lists[f.in_doubt_index];
    auto const count = static_cast<std::int32_t>(length(l.head, f.key));
    if (l.room + count == l.limit)
        return;
    void* last = taken;
    while (void* const next = next_of(last, f.key))
        last = next;
    link(last, l.head, mark_for(last, f.key));
    l.head = taken;
}

/// Sets `room` and `limit` of a list from its blocks. Even an empty list loses what it may keep
/// above its first limit.
void count_again(front& f, std::size_t index) noexcept
{
    list& l = f.lists[index];
    bool const is_hidden = l.is_hidden();
    std::size_t const count = length(is_hidden ? f.back.hidden[index] : l.head, f.key);
    l.limit = std::max(std::min(l.limit, shapes[index].limit), static_cast<std::uint16_t>(count));
    l.room = l.limit - static_cast<std::int32_t>(count);
    if (is_hidden)
        l.room -= list::hidden_by;
}

} // namespace

void come_home(front& f) noexcept
{
    if (!is_away(f))
        return;
    settle_doubt(f);
    for (std::size_t i = 0; i < class_count; ++i)
        count_again(f, i);
    show_home(f);
}

void visit_threads(visits which) noexcept
{
    the_central.expect_growth(); // so that no other thread visits at the same time
    for (front* f = all_fronts(); f != nullptr;) {
        access const alone(parked_lock);
        if (alone.is_guest()) // a fork keeps the lock, and visits do not wait for forks
            break;
        f = visit_some(f, which);
    }
    the_central.expect_growth();
}

void visit_threads_soon() noexcept
{
    constinit static std::atomic<std::uint64_t> visited_last{0};
    std::uint64_t const now = os::coarse_milliseconds();
    std::uint64_t last = visited_last.load(std::memory_order_relaxed);
    if (now - last >= 250 &&
        visited_last.compare_exchange_strong(last, now, std::memory_order_relaxed))
        visit_threads(visits::of_idle);
}

} // namespace mallard::engine
