// The slice heap. It finds and frees spans, caches spans of a class, and returns idle memory to the
// system.
#include "slice_heap.hpp"

#include "limits.hpp"
#include "reservation.hpp"
#include "slice_bits.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mallard::engine {

constinit slice_heap the_slice_heap;

namespace {

/// The number of dirty slices (free, but not returned to the system) that any process may have,
/// even the smallest.
constexpr std::size_t dirty_least = (std::size_t{4} << 20) / slice_bytes;
constexpr std::size_t bonus_least = (std::size_t{64} << 20) / slice_bytes;
/// The largest number of slices in the span cache of a class with small slabs. If there are more,
/// the oldest spans leave the span cache, because they were freed too long ago to be in the
/// processor's cache. Such spans are better allocated in address order.
constexpr std::size_t span_cache_slices_max = (std::size_t{1} << 20) / slice_bytes;
constexpr std::size_t small_slab_most = 3;
/// If more slices than this are dirty, threads check more often for memory to purge (see
/// decay.hpp).
constexpr std::size_t idle_least = (std::size_t{1} << 20) / slice_bytes;
/// The approximate number of slices at which a call of `age` stops purging.
constexpr std::size_t purge_step = (std::size_t{16} << 20) / slice_bytes;

// The filters below select the slices of a group that `find_run` may use.
constexpr auto free_ones = [](slice_group const& g) noexcept { return ~g.used; };
constexpr auto dirty_ones = [](slice_group const& g) noexcept { return g.dirty; };
constexpr auto free_for_guests = [](slice_group const& g) noexcept { return ~(g.used | g.guest); };

} // namespace

/// Marks a free span as used.
span slice_heap::claim(reservation& r, std::size_t slice, std::size_t slices) noexcept
{
    std::size_t count = 0; // number of dirty slices in the span
    for_each_group(r, slice, slices, [&](slice_group& g, std::uint64_t those) {
        std::uint64_t const there = g.dirty & those;
        if (there == those) // all dirty: avoid popcount, which baseline x86-64 lacks
            count +=
                static_cast<std::size_t>(64 - std::countl_zero(those) - std::countr_zero(those));
        else if (there != 0)
            count += static_cast<std::size_t>(std::popcount(there));
        g.used |= those;
        g.dirty &= ~those;
        g.aged &= ~those;
    });
    usage_.dirty -= count;
    usage_.used += slices;
    usage_.used_max = std::max(usage_.used_max, usage_.used);
    usage_.taken_max = std::max(usage_.taken_max, usage_.used + usage_.dirty);
    if (usage_.used > expected_ + growth_least) [[unlikely]]
        has_grown_.store(true, std::memory_order_relaxed);
    // The program needs clean slices soon after a purge, so that purge returned too many slices to
    // the system. Let more slices stay dirty from now on.
    if (count < slices && purged_lately_ != 0) {
        std::size_t const again = std::min(slices - count, purged_lately_);
        purged_lately_ -= again;
        bonus_ = std::min(bonus_ + again, std::max(bonus_least, usage_.used_max / 2));
    }
    return {&r, slice, count == 0};
}

/// Frees all spans of a span cache except the newest `count`.
void slice_heap::trim_span_cache(span_cache& at, std::uint32_t count) noexcept
{
    slab** end = &at.first;
    for (at.count = 0; at.count < count; ++at.count)
        end = &(*end)->next;
    at.least = std::min(at.least, count);
    for (slab* s = std::exchange(*end, nullptr); s != nullptr; s = s->next) {
        reservation& r = *reservation_of(s->start);
        std::size_t const slice = r.slice_of(s->start);
        r.mark(slice, s->slices, 0);
        usage_.dirty -= s->slices;
        usage_.used += s->slices;
        release(r, slice, s->slices, true);
    }
}

void slice_heap::flush_span_caches() noexcept
{
    for (; classes_with_spans_ != 0; classes_with_spans_ &= classes_with_spans_ - 1)
        trim_span_cache(span_caches_[std::countr_zero(classes_with_spans_)], 0);
}

namespace {

/// Commits slices by raising the commit limit of `r`, or opens `r` as the next reservation.
os::growth make_memory(reservation& r, std::size_t slices, std::size_t& committed) noexcept
{
    bool const is_new = &r == reservations + reservations_used.load(std::memory_order_relaxed);
    return is_new ? add_reservation(slices, committed) : raise_commit_limit(r, slices, committed);
}

} // namespace

/// Allocates the lowest span of slices that `candidates` selects. `first` is the member of
/// `reservation` that stores where the search starts.
template <class F>
span slice_heap::take_lowest(std::size_t reservation::* first, std::size_t slices,
                             std::size_t align, F candidates) noexcept
{
    reservation* const end = reservations + reservations_used.load(std::memory_order_relaxed);
    for (reservation* r = reservations; r != end; ++r) {
        std::size_t const at = find_run(*r, r->*first, slices, align, candidates);
        if (at != no_slice)
            return claim(*r, at, slices);
    }
    return {};
}

/// Allocates from memory that is committed already. Searches the dirty slices first. If they are
/// not enough, flushes the span caches and searches the dirty slices again, and then all free
/// slices.
span slice_heap::take_committed(std::size_t slices, std::size_t align) noexcept
{
    if (usage_.dirty >= slices) {
        span const found = take_lowest(&reservation::first_dirty, slices, align, dirty_ones);
        if (found.in != nullptr)
            return found;
    }
    if (classes_with_spans_ != 0) {
        flush_span_caches();
        return take_committed(slices, align);
    }
    return take_lowest(&reservation::first_free, slices, align, free_ones);
}

/// Commits more memory and allocates a span there.
span slice_heap::take_fresh(std::size_t slices, std::size_t align) noexcept
{
    for (reservation& r : reservations) {
        // The span may begin with free slices below the old commit limit.
        os::growth const moved = make_memory(r, slices + align - 1, usage_.committed);
        if (moved == os::growth::blocked)
            continue;
        // The system has no memory, so another reservation would not help.
        if (moved == os::growth::refused)
            return {};
        return claim(r, find_run(r, r.first_free, slices, align, free_ones), slices);
    }
    return {};
}

span slice_heap::find(span_cache& at, std::size_t slices, std::size_t align) noexcept
{
    if (at.first != nullptr) {
        slab const& s = *std::exchange(at.first, at.first->next);
        at.least = std::min(at.least, --at.count);
        usage_.dirty -= slices;
        usage_.used += slices;
        reservation* const in = reservation_of(s.start);
        return {in, in->slice_of(s.start), false, true};
    }
    span found;
    if (slices <= usage_.committed - usage_.used)
        found = take_committed(slices, align);
    return found.in != nullptr ? found : take_fresh(slices, align);
}

span slice_heap::take_from(span_cache& at, std::size_t slices, std::size_t align) noexcept
{
    if (!the_limits.try_charge(slices * slice_bytes))
        return {};
    access alone(lock_);
    span const found = alone.is_guest() ? take_as_guest(slices, align) : find(at, slices, align);
    if (found.in == nullptr)
        the_limits.uncharge(slices * slice_bytes);
    else if (!found.from_cache)
        purge_if_due(alone);
    return found;
}

span slice_heap::take(std::size_t slices, std::size_t align) noexcept
{
    span_cache empty;
    return take_from(empty, slices, align);
}

span slice_heap::take_of_class(std::size_t index) noexcept
{
    return take_from(span_caches_[index], shapes[index].slices, 1);
}

void slice_heap::release(reservation& r, std::size_t slice, std::size_t slices, bool dirty) noexcept
{
    for_each_group(r, slice, slices, [&](slice_group& g, std::uint64_t those) {
        g.used &= ~those;
        if (dirty)
            g.dirty |= those;
    });
    r.first_free = std::min(r.first_free, slice / bits_per_group);
    usage_.used -= slices;
    if (dirty) {
        r.first_dirty = std::min(r.first_dirty, slice / bits_per_group);
        usage_.dirty += slices;
    }
}

void slice_heap::purge_if_due(access& alone) noexcept
{
    if (alone.is_guest())
        return;
    if (usage_.dirty > idle_least && !is_idle())
        idle_.store(idle::newly, std::memory_order_relaxed);
    if (usage_.dirty <= dirty_max() || refused_) [[likely]]
        return;
    flush_span_caches();
    purge_some(alone, false, usage_.dirty - dirty_max() / 4 * 3);
}

void slice_heap::give(reservation& in, std::size_t slice, std::size_t slices, bool purged) noexcept
{
    in.unmark(slice, slices);
    the_limits.uncharge(slices * slice_bytes);
    access alone(lock_);
    if (alone.is_guest())
        return give_as_guest(in, slice, slices);
    release(in, slice, slices, !purged);
    usage_.purged += purged ? slices : 0;
    purge_if_due(alone);
}

void slice_heap::give_of_class(reservation& in, std::size_t slice) noexcept
{
    slab& s = in.slabs[slice];
    if (s.index >= classed_count)
        return give(in, slice, s.slices);
    in.mark(slice, s.index < span_class_first ? s.slices : 1, 0);
    the_limits.uncharge(s.slices * slice_bytes);
    access alone(lock_);
    if (alone.is_guest())
        return give_as_guest(in, slice, s.slices);
    span_cache& at = span_caches_[s.index];
    s.next = std::exchange(at.first, &s);
    at.count += 1;
    classes_with_spans_ |= std::uint64_t{1} << s.index;
    usage_.dirty += s.slices;
    usage_.used -= s.slices;
    if (s.slices <= small_slab_most && std::size_t{at.count} * s.slices > span_cache_slices_max)
        [[unlikely]]
        trim_span_cache(at, at.count / 2);
    purge_if_due(alone);
}

bool slice_heap::extend(reservation& in, std::size_t slice, std::size_t slices, std::size_t more,
                        bool& zero) noexcept
{
    if (!the_limits.try_charge(more * slice_bytes))
        return false;
    access alone(lock_);
    std::size_t const end = slice + slices;
    if (alone.is_guest() ||
        (!is_free(in, end, more) && (flush_span_caches(), !is_free(in, end, more)))) {
        the_limits.uncharge(more * slice_bytes);
        return false;
    }
    zero = claim(in, end, more).zero;
    purge_if_due(alone);
    return true;
}

/// Returns whether the slices are free. Raises the commit limit if the slices are beyond it.
bool slice_heap::is_free(reservation& in, std::size_t slice, std::size_t slices) noexcept
{
    if (slices > in.room - slice)
        return false;
    std::uint64_t used = 0;
    std::size_t const there = std::min(slices, in.commit_limit() - slice);
    for_each_group(in, slice, there,
                   [&](slice_group& g, std::uint64_t those) { used |= g.used & those; });
    if (used != 0)
        return false;
    return there == slices ||
           raise_commit_limit(in, slices - there, usage_.committed) == os::growth::made;
}

/// Returns the largest number of slices that may be dirty, which is the smaller of two bounds. The
/// first bound is a quarter of the used slices, but at least 4 MiB, plus `bonus_`. The second bound
/// is the number of slices by which the use has fallen from its maximum, but at least 4 MiB. While
/// memory is short, the result is 4 MiB.
std::size_t slice_heap::dirty_max() const noexcept
{
    if (short_)
        return dirty_least;
    std::size_t const wished = std::max(dirty_least, usage_.used / 4) + bonus_;
    return std::min(wished, std::max(dirty_least, usage_.used_max - usage_.used));
}

/// Returns a dirty span to the system. Marks the span as used during the system call, so that the
/// lock can be released and no thread waits for the call.
void slice_heap::purge_span(access& alone, reservation& r, std::size_t slice,
                            std::size_t slices) noexcept
{
    std::size_t const used_max = usage_.used_max;
    std::size_t const lately = std::exchange(purged_lately_, 0);
    claim(r, slice, slices);
    usage_.used_max = used_max;
    alone.give();
    bool const gone = os::purge(r.address_of(slice), slices * slice_bytes);
    alone.take();
    if (alone.is_guest()) // a fork has begun while the lock was free
        return give_as_guest(r, slice, slices);
    release(r, slice, slices, !gone);
    refused_ |= !gone;
    purged_lately_ += lately;
    if (gone) {
        usage_.purged += slices;
        purged_lately_ += slices;
    }
}

/// Purges dirty slices, which means that their memory is returned to the system. If `only_aged` is
/// true, purges only aged slices. Stops after about `slices_max` slices. Returns the number of
/// purged slices. Starts at the highest address of a reservation, since allocation starts at the
/// lowest.
std::size_t slice_heap::purge_some(access& alone, bool only_aged, std::size_t slices_max) noexcept
{
    std::size_t done = 0;
    for (reservation& r : reservations)
        for (std::size_t g = r.commit_limit() / bits_per_group; g-- != 0 && done < slices_max;)
            for (std::uint64_t left = only_aged ? r.groups[g].aged : r.groups[g].dirty;
                 left != 0 && done < slices_max;) {
                auto const zeros = static_cast<std::size_t>(std::countl_zero(left));
                auto const ones = static_cast<std::size_t>(std::countl_one(left << zeros));
                std::size_t const first = bits_per_group - zeros - ones;
                purge_span(alone, r, g * bits_per_group + first, ones);
                if (alone.is_guest())
                    return done;
                done += ones;
                // Read the bits again, because the lock was released in the meantime.
                left = (only_aged ? r.groups[g].aged : r.groups[g].dirty) &
                       (first == 0 ? 0 : bits(0, first));
            }
    return done;
}

bool slice_heap::age() noexcept
{
    access alone(lock_);
    if (alone.is_guest())
        return true;
    // Purge the slices that stayed idle for a whole decay interval. The program did not need these
    // slices, so reduce the bonus by their number.
    std::size_t const purged = purge_some(alone, true, purge_step);
    if (alone.is_guest())
        return true;
    bonus_ -= std::min(bonus_, purged);
    if (purged >= purge_step)
        return false;
    purged_lately_ -= purged_lately_ / 8;
    refused_ = false; // after a failed purge, the next purge waits for the next interval
    for (span_cache& at : span_caches_) {
        trim_span_cache(at, at.count - at.least);
        at.least = at.count;
    }
    for (reservation& r : reservations)
        for (std::size_t g = 0; g < r.commit_limit() / bits_per_group; ++g)
            r.groups[g].aged = r.groups[g].dirty;
    if (usage_.dirty <= idle_least)
        idle_.store(idle::no, std::memory_order_relaxed);
    return true;
}

void slice_heap::expect_shortage(bool is_short) noexcept
{
    access const alone(lock_);
    if (!alone.is_guest())
        short_ = is_short;
}

bool slice_heap::trim(std::size_t keep) noexcept
{
    access alone(lock_);
    if (alone.is_guest())
        return false;
    std::size_t const kept = keep / slice_bytes;
    flush_span_caches();
    return usage_.dirty > kept && purge_some(alone, false, usage_.dirty - kept) != 0;
}

void slice_heap::expect_growth() noexcept
{
    access const alone(lock_);
    if (alone.is_guest())
        return;
    expected_ = usage_.used + usage_.used / 8;
    has_grown_.store(false, std::memory_order_relaxed);
}

usage slice_heap::now() noexcept
{
    access const alone(lock_);
    return usage_;
}

// --- guests: calls while another thread forks (see guests.hpp) ----------------------

/// Allocates one of the newest 16 spans that other threads have freed while a thread forks.
/// Searches no more than 16 spans, since other threads wait for the lock. In the child, a span that
/// was freed during the fork stays allocated in any case.
span slice_heap::take_given(std::size_t slices) noexcept
{
    slab** at = &given_by_guests_;
    for (int tries = 16; *at != nullptr && tries != 0; at = &(*at)->next, --tries)
        if ((*at)->slices == slices) {
            slab const& s = *std::exchange(*at, (*at)->next);
            reservation* const in = reservation_of(s.start);
            return {in, in->slice_of(s.start), false};
        }
    return {};
}

/// Allocates while another thread forks. Marks the slices in the bits `slice_group::guest`, which
/// only this slow path writes. After the fork, `add_guests` counts these slices as used.
span slice_heap::take_as_guest(std::size_t slices, std::size_t align) noexcept
{
    if (align == 1)
        if (span const given = take_given(slices); given.in != nullptr)
            return given;
    std::size_t committed = 0; // not used, because `add_guests` computes this sum
    for (reservation& r : reservations) {
        std::size_t first = r.first_free; // `r.first_free` does not change during a fork
        std::size_t at = find_run(r, first, slices, align, free_for_guests);
        if (at == no_slice) {
            os::growth const moved = make_memory(r, slices + align - 1, committed);
            if (moved == os::growth::blocked)
                continue;
            if (moved == os::growth::refused)
                return {};
            at = find_run(r, first, slices, align, free_for_guests);
        }
        std::uint64_t dirty = 0;
        for_each_group(r, at, slices, [&](slice_group& g, std::uint64_t those) {
            dirty |= g.dirty & those;
            g.guest |= those;
        });
        return {&r, at, dirty == 0};
    }
    return {};
}

/// Records a span that is freed while another thread forks. The slice heap frees the span after the
/// fork.
void slice_heap::give_as_guest(reservation& in, std::size_t slice, std::size_t slices) noexcept
{
    slab& s = in.slabs[slice];
    s.start = in.address_of(slice);
    s.slices = static_cast<std::uint32_t>(slices);
    s.next = std::exchange(given_by_guests_, &s);
}

/// Marks the slices that other threads allocated during a fork as used, and counts them.
void slice_heap::add_guests() noexcept
{
    usage_.committed = 0;
    for (reservation& r : reservations) {
        usage_.committed += r.commit_limit();
        for (std::size_t i = 0; i < r.commit_limit() / bits_per_group; ++i) {
            slice_group& g = r.groups[i];
            if (g.guest == 0)
                continue;
            g.used |= g.guest;
            usage_.used += static_cast<std::size_t>(std::popcount(g.guest));
            usage_.dirty -= static_cast<std::size_t>(std::popcount(g.dirty & g.guest));
            g.dirty &= ~g.guest;
            g.aged &= ~g.guest;
            g.guest = 0;
        }
    }
    usage_.used_max = std::max(usage_.used_max, usage_.used);
}

void slice_heap::open() noexcept
{
    add_guests();
    for (slab* s = std::exchange(given_by_guests_, nullptr); s != nullptr; s = s->next) {
        reservation& r = *reservation_of(s->start);
        release(r, r.slice_of(s->start), s->slices, true);
    }
    lock_.open();
}

void slice_heap::forget_guests() noexcept
{
    add_guests();
    given_by_guests_ = nullptr;
}

} // namespace mallard::engine
