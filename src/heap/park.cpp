// The fronts of all threads: made, parked, adopted, and kept whole over fork.
#include "park.hpp"

#include "central.hpp"
#include "fork.hpp"
#include "remote.hpp"
#include "sample.hpp"
#include "store.hpp"

#include <new>
#include <utility>

#include <pthread.h>

namespace mallard::engine {

constinit std::uint64_t the_key = 0;
constinit os::lock parked_lock;

namespace {

constinit os::lock late_lock;

// Under the lock of the parked.
constinit front* parked = nullptr;
constinit front* newest = nullptr;
constinit entry numbers = 0;
constinit stable_store store;
constinit pthread_key_t exit_key{};
constinit bool has_exit_key = false;
constinit bool sampling = false;

/// So that nobody locks to learn that there is nothing: bit i for class i.
constinit std::atomic<std::uint64_t> parked_classes{0};

/// The front that this thread owns, whichever front it is shown.
constinit thread_local front* own_one = nullptr;

front the_late_front; // of those who get none; with a number, so that `free` finds it

/// The system calls the destructors of keys again while there are values, four times at
/// most. In the second round most of what other keys' destructors free has been freed, and
/// a thread whose first call is in one of the first two rounds still gets here in time.
constexpr std::uintptr_t exit_rounds = 2;

void depart(front& f) noexcept;

extern "C" void mallard_at_thread_exit(void* value)
{
    auto const round = reinterpret_cast<std::uintptr_t>(value);
    if (round < exit_rounds &&
        ::pthread_setspecific(exit_key, reinterpret_cast<void*>(round + 1)) == 0)
        return;
    if (front* const f = std::exchange(own_one, nullptr))
        depart(*f);
}

void enroll(front& f) noexcept
{
    f.real = &f;
    f.tag = ++numbers << owner_shift; // before anybody has the number
    f.key = the_key;
    empty_lists(f);
    f.next_of_all = newest;
    std::atomic_signal_fence(std::memory_order_seq_cst); // a fork may find it half made
    newest = &f;
}

/// Once, by the first thread that gets a front.
void begin() noexcept
{
    if (the_key != 0)
        return;
    // With the highest bit, so that no small number or address of a program is a mark.
    the_key = os::random_bits() | std::uint64_t{1} << 63;
    has_exit_key = ::pthread_key_create(&exit_key, mallard_at_thread_exit) == 0;
    enroll(the_late_front);
}

front* make() noexcept
{
    if (numbers == thread_owner_max)
        return nullptr;
    void* const room = store.cut(sizeof(front));
    if (room == nullptr)
        return nullptr;
    front* const f = ::new (room) front;
    enroll(*f);
    return f;
}

std::uint64_t classes_of(const front& f) noexcept
{
    std::uint64_t classes = 0;
    for (std::size_t i = 0; i < run_class_first; ++i)
        if (f.queues[i].partial != nullptr)
            classes |= std::uint64_t{1} << i;
    return classes;
}

bool prepare_samples(front& f) noexcept
{
    if (f.sampled != nullptr)
        return true;
    void* const room = store.cut(align_up(sizeof(sampled_front), alignof(sampled_front)));
    if (room == nullptr)
        return false;
    f.sampled = ::new (room) sampled_front;
    begin_sampled_front(*f.sampled, f);
    return true;
}

/// From here to its end others may change what this thread takes for its front.
void begin_to_show(front& f) noexcept
{
    access const alone(parked_lock);
    f.shown_at = &my_front;
    if (sampling)
        prepare_samples(f);
    my_front = front_to_show(f);
}

void end_to_show(front& f) noexcept
{
    access const alone(parked_lock);
    f.shown_at = nullptr;
    my_front = &departed_front;
}

/// Guests may call this too, but take no parked front.
void park(front& f) noexcept
{
    access const alone(parked_lock);
    f.next_parked = parked;
    std::atomic_signal_fence(std::memory_order_seq_cst); // a fork may find it half done
    parked = &f;
    parked_classes.fetch_or(classes_of(f), std::memory_order_relaxed);
}

/// Returns a parked front, or a new one; null: there is no memory.
front* take_or_make() noexcept
{
    access const alone(parked_lock);
    begin();
    if (parked == nullptr || alone.is_guest())
        return make();
    return std::exchange(parked, parked->next_parked);
}

void depart(front& f) noexcept
{
    end_to_show(f);
    {
        at_work const here(f);
        empty(f);
    }
    park(f);
}

} // namespace

front* front_to_show(front& f) noexcept
{
    return sampling && f.sampled != nullptr ? f.sampled : &f;
}

void empty(front& f) noexcept
{
    bring_back(f);
    for (std::size_t i = 0; i < class_count; ++i)
        shrink(f, i, 0);
    send_all(f);
    read_letters(f, ~std::size_t{0});
    for (slab_queue& q : f.queues)
        if (q.fresh != nullptr && q.fresh->used == 0)
            give_slab(*std::exchange(q.fresh, nullptr));
}

std::uint64_t key_of_process() noexcept
{
    access const alone(parked_lock);
    begin();
    return the_key;
}

front* own_front() noexcept
{
    front* f = shown_front();
    if (f->real != nullptr)
        return f->real;
    if (f == &departed_front)
        return nullptr;
    if (f == &visited_front) {
        at_work const at_home(*own_one);
        return own_one;
    }
    f = take_or_make();
    if (f == nullptr)
        return nullptr;
    own_one = f;
    my_front = f; // by now, as what follows may allocate
    if (has_exit_key &&
        ::pthread_setspecific(exit_key, reinterpret_cast<void*>(std::uintptr_t{1})) == 0)
        begin_to_show(*f);
    return f;
}

front* take_late_front() noexcept
{
    // Its number it has since this thread looked for its own front. While a fork keeps it the
    // thread has one for this call.
    return late_lock.take_unless_kept() ? &the_late_front : take_or_make();
}

const front& late_front() noexcept
{
    return the_late_front;
}

void give_late_front(front& f) noexcept
{
    if (&f == &the_late_front)
        late_lock.give();
    else
        park(f);
}

/// Who comes after him finds this thread at work.
void at_work::wait_for_visitor() noexcept
{
    access const until_he_is_gone(parked_lock);
    come_home(front_);
}

void visit_if_idle(front& f) noexcept
{
    if (!parked_lock.try_take())
        return;
    std::uint32_t const passed = f.slow_paths.load(std::memory_order_relaxed);
    if (std::exchange(f.slow_paths_seen, passed) == passed) {
        std::uint32_t const before = f.wanted.exchange(1, std::memory_order_relaxed);
        bool const is_away = before != 0; // its thread will wait, as for the visitor before
        if (is_away ||
            (os::barrier_in_all_threads() && f.busy.load(std::memory_order_acquire) == 0))
            read_letters(f, ~std::size_t{0});
        f.wanted.store(before, std::memory_order_release);
    }
    parked_lock.give();
}

slab* adopt_slab(front& f, code c, slab_queue& q) noexcept
{
    std::size_t const index = class_of_code(c);
    std::uint64_t const bit = std::uint64_t{1} << index;
    if ((parked_classes.load(std::memory_order_relaxed) & bit) == 0)
        return nullptr;
    access const alone(parked_lock);
    if (alone.is_guest())
        return nullptr;
    for (front* each = parked; each != nullptr; each = each->next_parked) {
        slab* const s = each->queues[index].partial;
        if (s == nullptr)
            continue;
        unlist(each->queues[index], *s);
        if (each->queues[index].fresh == s)
            each->queues[index].fresh = nullptr; // carved no further; so be it
        s->owner.store(&f, std::memory_order_release);
        window& w = *window_of(s->start);
        w.mark(w.granule_of(s->start), s->granules, entry_of(f.tag, c));
        list_it(q, *s);
        return s;
    }
    parked_classes.fetch_and(~bit, std::memory_order_relaxed);
    return nullptr;
}

void visit_parked() noexcept
{
    // Nobody may ever look there again.
    if (late_lock.try_take()) {
        {
            at_work const here(the_late_front);
            empty(the_late_front);
        }
        late_lock.give();
    }
    if (!parked_lock.try_take())
        return;
    std::uint64_t classes = 0;
    for (front* each = parked; each != nullptr; each = each->next_parked) {
        empty(*each);
        classes |= classes_of(*each);
    }
    parked_classes.store(classes, std::memory_order_relaxed);
    parked_lock.give();
}

namespace {

void empty_own_and(visits others) noexcept
{
    if (own_one != nullptr) {
        at_work const here(*own_one);
        empty(*own_one);
    }
    visit_threads(others);
    visit_parked();
}

} // namespace

void reclaim() noexcept
{
    empty_own_and(visits::of_idle);
}

void empty_all() noexcept
{
    empty_own_and(visits::of_all);
}

front* all_fronts() noexcept
{
    access const alone(parked_lock);
    return newest;
}

bool show_sampled_fronts(bool shown) noexcept
{
    os::hold const alone(parked_lock);
    for (front* f = newest; shown && f != nullptr; f = f->next_of_all)
        if (f->shown_at != nullptr && !prepare_samples(*f))
            return false;
    sampling = shown;
    for (front* f = newest; f != nullptr; f = f->next_of_all)
        if (f->shown_at != nullptr && f->wanted.load(std::memory_order_relaxed) == 0)
            *f->shown_at = front_to_show(*f);
    return true;
}

void take_fronts() noexcept
{
    late_lock.take();
    parked_lock.take();
    begin(); // so that a guest never has to
}

void keep_fronts() noexcept
{
    late_lock.keep();
    parked_lock.keep();
}

void open_fronts() noexcept
{
    parked_lock.open();
    late_lock.open();
}

void reset_fronts() noexcept
{
    parked_lock.reset();
    late_lock.reset();
    // Recount: another thread may have been changing the sum during the fork.
    std::size_t allowed = 0;
    for (front* f = newest; f != nullptr; f = f->next_of_all) {
        if (f->shown_at != &my_front) {
            f->shown_at = nullptr;
            f->allowance[0] = f->allowance[1] = 0;
        }
        allowed += f->allowance[0] + f->allowance[1];
    }
    allowances.store(allowed, std::memory_order_relaxed);
}

} // namespace mallard::engine
