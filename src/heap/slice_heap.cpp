// Spans of slices: found, kept, given back to the system.
#include "slice_heap.hpp"

#include "limits.hpp"
#include "reservation.hpp"
#include "slice_bits.hpp"
#include "thread_cache.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mallard::engine {

constinit slice_heap the_slice_heap;

namespace {

/// Dirty slices that may lie idle whatever is in use.
constexpr std::size_t dirty_least = (std::size_t{4} << 20) / slice_bytes;
constexpr std::size_t bonus_least = (std::size_t{64} << 20) / slice_bytes;
/// Slices on the span cache of a class of small slabs. What came before them is as far away as any
/// other, and memory is read faster upwards than here and there: it is found by its address.
constexpr std::size_t span_cache_slices_max = (std::size_t{1} << 20) / slice_bytes;
constexpr std::size_t small_slab_most = 3;
/// In one go, with the lock given up meanwhile.
constexpr std::size_t purge_step = (std::size_t{16} << 20) / slice_bytes;

constexpr auto free_ones = [](group const& g) noexcept { return ~g.used; };
constexpr auto dirty_ones = [](group const& g) noexcept { return g.dirty; };

} // namespace

span slice_heap::claim(reservation& w, std::size_t slice, std::size_t slices) noexcept
{
    std::size_t count = 0; // of dirty ones
    for_each_group(w, slice, slices, [&](group& g, std::uint64_t those) {
        std::uint64_t const there = g.dirty & those;
        if (there == those) // in a row: no need to count
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
    if (usage_.used > expected_ + growth_least) [[unlikely]]
        has_grown_.store(true, std::memory_order_relaxed);
    // Clean pages that were given back a moment ago: there should have been room for them.
    if (count < slices && purged_lately_ != 0) {
        std::size_t const again = std::min(slices - count, purged_lately_);
        purged_lately_ -= again;
        bonus_ = std::min(bonus_ + again, std::max(bonus_least, usage_.used_max / 2));
    }
    return {&w, slice, count == 0};
}

/// The newest of them.
void slice_heap::trim_span_cache(span_cache& at, std::uint32_t count) noexcept
{
    slab** end = &at.first;
    for (at.count = 0; at.count < count; ++at.count)
        end = &(*end)->next;
    at.least = std::min(at.least, count);
    for (slab* s = std::exchange(*end, nullptr); s != nullptr; s = s->next) {
        reservation& w = *reservation_of(s->start);
        std::size_t const slice = w.slice_of(s->start);
        w.mark(slice, s->slices, 0);
        usage_.dirty -= s->slices;
        usage_.used += s->slices;
        release(w, slice, s->slices, true);
    }
}

void slice_heap::flush_span_caches() noexcept
{
    for (; classes_with_spans_ != 0; classes_with_spans_ &= classes_with_spans_ - 1)
        trim_span_cache(span_caches_[std::countr_zero(classes_with_spans_)], 0);
}

namespace {

os::growth make_memory(reservation& w, std::size_t slices, std::size_t& committed) noexcept
{
    bool const is_new = &w == reservations + reservations_used.load(std::memory_order_relaxed);
    return is_new ? add_reservation(slices, committed) : raise_commit_limit(w, slices, committed);
}

} // namespace

template <class F>
span slice_heap::take_lowest(std::size_t reservation::* first, std::size_t slices,
                             std::size_t align, F candidates) noexcept
{
    reservation* const end = reservations + reservations_used.load(std::memory_order_relaxed);
    for (reservation* w = reservations; w != end; ++w) {
        std::size_t const at = find_run(*w, w->*first, slices, align, candidates);
        if (at != no_slice)
            return claim(*w, at, slices);
    }
    return {};
}

span slice_heap::take_below_commit_limits(std::size_t slices, std::size_t align) noexcept
{
    if (usage_.dirty >= slices) {
        span const r = take_lowest(&reservation::first_dirty, slices, align, dirty_ones);
        if (r.in != nullptr)
            return r;
    }
    if (classes_with_spans_ != 0) {
        flush_span_caches();
        return take_below_commit_limits(slices, align);
    }
    return take_lowest(&reservation::first_free, slices, align, free_ones);
}

span slice_heap::take_fresh(std::size_t slices, std::size_t align) noexcept
{
    if (reservations_used.load(std::memory_order_relaxed) == 0)
        tag_decoy_caches();
    for (reservation& w : reservations) {
        // What is free before the commit limit counts, but not more than that.
        os::growth const moved = make_memory(w, slices + align - 1, usage_.committed);
        if (moved == os::growth::blocked)
            continue;
        // What is refused here is refused anywhere: another reservation would be no help.
        if (moved == os::growth::refused)
            return {};
        return claim(w, find_run(w, w.first_free, slices, align, free_ones), slices);
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
    span r;
    if (slices <= usage_.committed - usage_.used)
        r = take_below_commit_limits(slices, align);
    return r.in != nullptr ? r : take_fresh(slices, align);
}

span slice_heap::take_from(span_cache& at, std::size_t slices, std::size_t align) noexcept
{
    if (!the_limits.admit(slices * slice_bytes))
        return {};
    access alone(lock_);
    span const r = alone.is_guest() ? take_as_guest(slices, align) : find(at, slices, align);
    if (r.in == nullptr)
        the_limits.discharge(slices * slice_bytes);
    else if (!r.again)
        purge_if_due(alone);
    return r;
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

void slice_heap::release(reservation& w, std::size_t slice, std::size_t slices, bool dirty) noexcept
{
    for_each_group(w, slice, slices, [&](group& g, std::uint64_t those) {
        g.used &= ~those;
        if (dirty)
            g.dirty |= those;
    });
    w.first_free = std::min(w.first_free, slice / bits_per_group);
    usage_.used -= slices;
    if (dirty) {
        w.first_dirty = std::min(w.first_dirty, slice / bits_per_group);
        usage_.dirty += slices;
    }
}

void slice_heap::purge_if_due(access& alone) noexcept
{
    if (alone.is_guest() || usage_.dirty <= dirty_max() || refused_) [[likely]]
        return;
    flush_span_caches();
    purge_some(alone, false, usage_.dirty - dirty_max() / 4 * 3);
}

void slice_heap::give(reservation& in, std::size_t slice, std::size_t slices, bool purged) noexcept
{
    in.unmark(slice, slices);
    the_limits.discharge(slices * slice_bytes);
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
    the_limits.discharge(s.slices * slice_bytes);
    access alone(lock_);
    if (alone.is_guest())
        return give_as_guest(in, slice, s.slices);
    span_cache& at = span_caches_[s.index];
    s.next = std::exchange(at.first, &s);
    at.count += 1;
    classes_with_spans_ |= std::uint64_t{1} << s.index;
    usage_.dirty += s.slices;
    usage_.used -= s.slices;
    if (s.slices <= small_slab_most && at.count * s.slices > span_cache_slices_max) [[unlikely]]
        trim_span_cache(at, at.count / 2);
    purge_if_due(alone);
}

bool slice_heap::extend(reservation& in, std::size_t slice, std::size_t slices, std::size_t more,
                        bool& zero) noexcept
{
    if (!the_limits.admit(more * slice_bytes))
        return false;
    access alone(lock_);
    std::size_t const end = slice + slices;
    if (alone.is_guest() ||
        (!is_free(in, end, more) && (flush_span_caches(), !is_free(in, end, more)))) {
        the_limits.discharge(more * slice_bytes);
        return false;
    }
    zero = claim(in, end, more).zero;
    purge_if_due(alone);
    return true;
}

/// Moves the commit limit if the span lies beyond it.
bool slice_heap::is_free(reservation& in, std::size_t slice, std::size_t slices) noexcept
{
    if (slices > in.room - slice)
        return false;
    std::uint64_t used = 0;
    std::size_t const there = std::min(slices, in.commit_limit() - slice);
    for_each_group(in, slice, there,
                   [&](group& g, std::uint64_t those) { used |= g.used & those; });
    if (used != 0)
        return false;
    return there == slices ||
           raise_commit_limit(in, slices - there, usage_.committed) == os::growth::made;
}

/// What may lie idle, in slices: no more than is in use at other times, so that both
/// together never are more than the program has ever had in use.
std::size_t slice_heap::dirty_max() const noexcept
{
    if (short_)
        return dirty_least;
    std::size_t const wished = std::max(dirty_least, usage_.used / 4) + bonus_;
    return std::min(wished, std::max(dirty_least, usage_.used_max - usage_.used));
}

/// The span is claimed meanwhile, and nobody waits for the system.
void slice_heap::purge_span(access& alone, reservation& w, std::size_t slice,
                            std::size_t slices) noexcept
{
    std::size_t const used_max = usage_.used_max;
    std::size_t const lately = std::exchange(purged_lately_, 0);
    claim(w, slice, slices);
    usage_.used_max = used_max;
    alone.give();
    bool const gone = os::purge(w.address_of(slice), slices * slice_bytes);
    alone.take();
    if (alone.is_guest()) // a fork has begun meanwhile
        return give_as_guest(w, slice, slices);
    release(w, slice, slices, !gone);
    refused_ |= !gone;
    purged_lately_ += lately;
    if (gone) {
        usage_.purged += slices;
        purged_lately_ += slices;
    }
}

/// From the highest down: the lowest are wanted first. Spans end where groups do.
std::size_t slice_heap::purge_some(access& alone, bool only_aged, std::size_t slices_max) noexcept
{
    std::size_t done = 0;
    for (reservation& w : reservations)
        for (std::size_t g = w.commit_limit() / bits_per_group; g-- != 0 && done < slices_max;)
            for (std::uint64_t left = only_aged ? w.groups[g].aged : w.groups[g].dirty;
                 left != 0 && done < slices_max;) {
                auto const zeros = static_cast<std::size_t>(std::countl_zero(left));
                auto const ones = static_cast<std::size_t>(std::countl_one(left << zeros));
                std::size_t const first = bits_per_group - zeros - ones;
                purge_span(alone, w, g * bits_per_group + first, ones);
                if (alone.is_guest())
                    return done;
                done += ones;
                // Others may have come and gone meanwhile.
                left = (only_aged ? w.groups[g].aged : w.groups[g].dirty) &
                       (first == 0 ? 0 : bits(0, first));
            }
    return done;
}

void slice_heap::age() noexcept
{
    access alone(lock_);
    if (alone.is_guest())
        return;
    // What lay idle for a decay interval needed no room.
    std::size_t const purged = purge_some(alone, true, purge_step);
    if (alone.is_guest())
        return;
    bonus_ -= std::min(bonus_, purged);
    purged_lately_ -= purged_lately_ / 8;
    refused_ = false; // one try of all a decay interval
    for (span_cache& at : span_caches_) {
        trim_span_cache(at, at.count - at.least);
        at.least = at.count;
    }
    for (reservation& w : reservations)
        for (std::size_t g = 0; g < w.commit_limit() / bits_per_group; ++g)
            w.groups[g].aged = w.groups[g].dirty;
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

// --- while another thread forks ------------------------------------------------

/// Takes slices beyond the commit limits that held when the fork began; none are freed there yet.
span slice_heap::take_as_guest(std::size_t slices, std::size_t align) noexcept
{
    std::size_t committed = 0; // counted when the fork is over
    for (reservation& w : reservations) {
        std::size_t first = w.kept / bits_per_group;
        std::size_t at = find_run(w, first, slices, align, free_ones);
        if (at == no_slice) {
            os::growth const moved = make_memory(w, slices + align - 1, committed);
            if (moved == os::growth::blocked)
                continue;
            if (moved == os::growth::refused)
                return {};
            at = find_run(w, first, slices, align, free_ones);
        }
        for_each_group(w, at, slices, [](group& g, std::uint64_t those) { g.used |= those; });
        return {&w, at, true};
    }
    return {};
}

void slice_heap::give_as_guest(reservation& in, std::size_t slice, std::size_t slices) noexcept
{
    slab& s = in.slabs[slice];
    s.start = in.address_of(slice);
    s.slices = static_cast<std::uint32_t>(slices);
    s.next = std::exchange(given_by_guests_, &s);
}

void slice_heap::keep() noexcept
{
    for (reservation& w : reservations)
        w.kept = w.commit_limit();
    lock_.keep();
}

void slice_heap::count_guests() noexcept
{
    for (reservation& w : reservations) {
        usage_.committed += w.commit_limit() - w.kept;
        for (std::size_t g = w.kept / bits_per_group; g < w.commit_limit() / bits_per_group; ++g)
            usage_.used += static_cast<std::size_t>(std::popcount(w.groups[g].used));
    }
    usage_.used_max = std::max(usage_.used_max, usage_.used);
}

void slice_heap::open() noexcept
{
    count_guests();
    for (slab* s = std::exchange(given_by_guests_, nullptr); s != nullptr; s = s->next) {
        reservation& w = *reservation_of(s->start);
        release(w, w.slice_of(s->start), s->slices, true);
    }
    lock_.open();
}

void slice_heap::forget_guests() noexcept
{
    count_guests();
    given_by_guests_ = nullptr;
}

} // namespace mallard::engine
