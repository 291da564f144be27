// Runs of granules: found, kept, given back to the system.
#include "central.hpp"

#include "front.hpp"
#include "granule_bits.hpp"
#include "limits.hpp"
#include "window.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mallard::engine {

constinit central the_central;

namespace {

/// Dirty granules that may lie idle whatever is in use.
constexpr std::size_t dirty_least = (std::size_t{4} << 20) / granule_bytes;
constexpr std::size_t bonus_least = (std::size_t{64} << 20) / granule_bytes;
/// Granules on the shelf of a class of small slabs. What came before them is as far away as any
/// other, and memory is read faster upwards than here and there: it is found by its address.
constexpr std::size_t shelf_most = (std::size_t{1} << 20) / granule_bytes;
constexpr std::size_t small_slab_most = 3;
/// In one go, with the lock given up meanwhile.
constexpr std::size_t purge_step = (std::size_t{16} << 20) / granule_bytes;

constexpr auto free_ones = [](group const& g) noexcept { return ~g.used; };
constexpr auto dirty_ones = [](group const& g) noexcept { return g.dirty; };

} // namespace

run central::claim(window& w, std::size_t granule, std::size_t granules) noexcept
{
    std::size_t count = 0; // of dirty ones
    for_each_group(w, granule, granules, [&](group& g, std::uint64_t those) {
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
    usage_.used += granules;
    usage_.used_max = std::max(usage_.used_max, usage_.used);
    if (usage_.used > expected_ + growth_least) [[unlikely]]
        has_grown_.store(true, std::memory_order_relaxed);
    // Clean pages that were given back a moment ago: there should have been room for them.
    if (count < granules && purged_lately_ != 0) {
        std::size_t const again = std::min(granules - count, purged_lately_);
        purged_lately_ -= again;
        bonus_ = std::min(bonus_ + again, std::max(bonus_least, usage_.used_max / 2));
    }
    return {&w, granule, count == 0};
}

/// The newest of them.
void central::keep_on_shelf(shelf& at, std::uint32_t count) noexcept
{
    slab** end = &at.first;
    for (at.count = 0; at.count < count; ++at.count)
        end = &(*end)->next;
    at.least = std::min(at.least, count);
    for (slab* s = std::exchange(*end, nullptr); s != nullptr; s = s->next) {
        window& w = *window_of(s->start);
        std::size_t const granule = w.granule_of(s->start);
        w.mark(granule, s->granules, 0);
        usage_.dirty -= s->granules;
        usage_.used += s->granules;
        release(w, granule, s->granules, true);
    }
}

void central::clear_shelves() noexcept
{
    for (; shelved_ != 0; shelved_ &= shelved_ - 1)
        keep_on_shelf(shelves_[std::countr_zero(shelved_)], 0);
}

namespace {

os::growth make_memory(window& w, std::size_t granules, std::size_t& committed) noexcept
{
    bool const is_new = &w == windows + windows_used.load(std::memory_order_relaxed);
    return is_new ? add_window(granules, committed) : move_frontier(w, granules, committed);
}

} // namespace

template <class F>
run central::take_lowest(std::size_t window::* first, std::size_t granules, std::size_t align,
                         F candidates) noexcept
{
    window* const end = windows + windows_used.load(std::memory_order_relaxed);
    for (window* w = windows; w != end; ++w) {
        std::size_t const at = find_run(*w, w->*first, granules, align, candidates);
        if (at != no_granule)
            return claim(*w, at, granules);
    }
    return {};
}

run central::take_below_frontiers(std::size_t granules, std::size_t align) noexcept
{
    if (usage_.dirty >= granules) {
        run const r = take_lowest(&window::first_dirty, granules, align, dirty_ones);
        if (r.in != nullptr)
            return r;
    }
    if (shelved_ != 0) {
        clear_shelves();
        return take_below_frontiers(granules, align);
    }
    return take_lowest(&window::first_free, granules, align, free_ones);
}

run central::take_fresh(std::size_t granules, std::size_t align) noexcept
{
    if (windows_used.load(std::memory_order_relaxed) == 0)
        mark_fronts_of_none();
    for (window& w : windows) {
        // What is free before the frontier counts, but not more than that.
        os::growth const moved = make_memory(w, granules + align - 1, usage_.committed);
        if (moved == os::growth::blocked)
            continue;
        // What is refused here is refused anywhere: another window would be no help.
        if (moved == os::growth::refused)
            return {};
        return claim(w, find_run(w, w.first_free, granules, align, free_ones), granules);
    }
    return {};
}

run central::find(shelf& at, std::size_t granules, std::size_t align) noexcept
{
    if (at.first != nullptr) {
        slab const& s = *std::exchange(at.first, at.first->next);
        at.least = std::min(at.least, --at.count);
        usage_.dirty -= granules;
        usage_.used += granules;
        window* const in = window_of(s.start);
        return {in, in->granule_of(s.start), false, true};
    }
    run r;
    if (granules <= usage_.committed - usage_.used)
        r = take_below_frontiers(granules, align);
    return r.in != nullptr ? r : take_fresh(granules, align);
}

run central::take_from(shelf& at, std::size_t granules, std::size_t align) noexcept
{
    if (!the_limits.admit(granules * granule_bytes))
        return {};
    access alone(lock_);
    run const r = alone.is_guest() ? take_as_guest(granules, align) : find(at, granules, align);
    if (r.in == nullptr)
        the_limits.discharge(granules * granule_bytes);
    else if (!r.again)
        purge_if_due(alone);
    return r;
}

run central::take(std::size_t granules, std::size_t align) noexcept
{
    shelf empty;
    return take_from(empty, granules, align);
}

run central::take_of_class(std::size_t index) noexcept
{
    return take_from(shelves_[index], shapes[index].granules, 1);
}

void central::release(window& w, std::size_t granule, std::size_t granules, bool dirty) noexcept
{
    for_each_group(w, granule, granules, [&](group& g, std::uint64_t those) {
        g.used &= ~those;
        if (dirty)
            g.dirty |= those;
    });
    w.first_free = std::min(w.first_free, granule / bits_a_group);
    usage_.used -= granules;
    if (dirty) {
        w.first_dirty = std::min(w.first_dirty, granule / bits_a_group);
        usage_.dirty += granules;
    }
}

void central::purge_if_due(access& alone) noexcept
{
    if (alone.is_guest() || usage_.dirty <= dirty_max() || refused_) [[likely]]
        return;
    clear_shelves();
    purge_some(alone, false, usage_.dirty - dirty_max() / 4 * 3);
}

void central::give(window& in, std::size_t granule, std::size_t granules, bool purged) noexcept
{
    in.unmark(granule, granules);
    the_limits.discharge(granules * granule_bytes);
    access alone(lock_);
    if (alone.is_guest())
        return give_as_guest(in, granule, granules);
    release(in, granule, granules, !purged);
    usage_.purged += purged ? granules : 0;
    purge_if_due(alone);
}

void central::give_of_class(window& in, std::size_t granule) noexcept
{
    slab& s = in.slabs[granule];
    if (s.index >= classed_count)
        return give(in, granule, s.granules);
    in.mark(granule, s.index < run_class_first ? s.granules : 1, 0);
    the_limits.discharge(s.granules * granule_bytes);
    access alone(lock_);
    if (alone.is_guest())
        return give_as_guest(in, granule, s.granules);
    shelf& at = shelves_[s.index];
    s.next = std::exchange(at.first, &s);
    at.count += 1;
    shelved_ |= std::uint64_t{1} << s.index;
    usage_.dirty += s.granules;
    usage_.used -= s.granules;
    if (s.granules <= small_slab_most && at.count * s.granules > shelf_most) [[unlikely]]
        keep_on_shelf(at, at.count / 2);
    purge_if_due(alone);
}

bool central::extend(window& in, std::size_t granule, std::size_t granules, std::size_t more,
                     bool& zero) noexcept
{
    if (!the_limits.admit(more * granule_bytes))
        return false;
    access alone(lock_);
    std::size_t const end = granule + granules;
    if (alone.is_guest() ||
        (!is_free(in, end, more) && (clear_shelves(), !is_free(in, end, more)))) {
        the_limits.discharge(more * granule_bytes);
        return false;
    }
    zero = claim(in, end, more).zero;
    purge_if_due(alone);
    return true;
}

/// Moves the frontier if the run lies beyond it.
bool central::is_free(window& in, std::size_t granule, std::size_t granules) noexcept
{
    if (granules > in.room - granule)
        return false;
    std::uint64_t used = 0;
    std::size_t const there = std::min(granules, in.frontier() - granule);
    for_each_group(in, granule, there,
                   [&](group& g, std::uint64_t those) { used |= g.used & those; });
    if (used != 0)
        return false;
    return there == granules ||
           move_frontier(in, granules - there, usage_.committed) == os::growth::made;
}

/// What may lie idle, in granules: no more than is in use at other times, so that both
/// together never are more than the program has ever had in use.
std::size_t central::dirty_max() const noexcept
{
    if (short_)
        return dirty_least;
    std::size_t const wished = std::max(dirty_least, usage_.used / 4) + bonus_;
    return std::min(wished, std::max(dirty_least, usage_.used_max - usage_.used));
}

/// The run is claimed meanwhile, and nobody waits for the system.
void central::purge_run(access& alone, window& w, std::size_t granule,
                        std::size_t granules) noexcept
{
    std::size_t const used_max = usage_.used_max;
    std::size_t const lately = std::exchange(purged_lately_, 0);
    claim(w, granule, granules);
    usage_.used_max = used_max;
    alone.give();
    bool const gone = os::purge(w.address_of(granule), granules * granule_bytes);
    alone.take();
    if (alone.is_guest()) // a fork has begun meanwhile
        return give_as_guest(w, granule, granules);
    release(w, granule, granules, !gone);
    refused_ |= !gone;
    purged_lately_ += lately;
    if (gone) {
        usage_.purged += granules;
        purged_lately_ += granules;
    }
}

/// From the highest down: the lowest are wanted first. Runs end where groups do.
std::size_t central::purge_some(access& alone, bool only_aged, std::size_t granules_max) noexcept
{
    std::size_t done = 0;
    for (window& w : windows)
        for (std::size_t g = w.frontier() / bits_a_group; g-- != 0 && done < granules_max;)
            for (std::uint64_t left = only_aged ? w.groups[g].aged : w.groups[g].dirty;
                 left != 0 && done < granules_max;) {
                auto const zeros = static_cast<std::size_t>(std::countl_zero(left));
                auto const ones = static_cast<std::size_t>(std::countl_one(left << zeros));
                std::size_t const first = bits_a_group - zeros - ones;
                purge_run(alone, w, g * bits_a_group + first, ones);
                if (alone.is_guest())
                    return done;
                done += ones;
                // Others may have come and gone meanwhile.
                left = (only_aged ? w.groups[g].aged : w.groups[g].dirty) &
                       (first == 0 ? 0 : bits(0, first));
            }
    return done;
}

void central::age() noexcept
{
    access alone(lock_);
    if (alone.is_guest())
        return;
    // What lay idle for an epoch needed no room.
    std::size_t const purged = purge_some(alone, true, purge_step);
    if (alone.is_guest())
        return;
    bonus_ -= std::min(bonus_, purged);
    purged_lately_ -= purged_lately_ / 8;
    refused_ = false; // one try of all an epoch
    for (shelf& at : shelves_) {
        keep_on_shelf(at, at.count - at.least);
        at.least = at.count;
    }
    for (window& w : windows)
        for (std::size_t g = 0; g < w.frontier() / bits_a_group; ++g)
            w.groups[g].aged = w.groups[g].dirty;
}

void central::expect_shortage(bool is_short) noexcept
{
    access const alone(lock_);
    if (!alone.is_guest())
        short_ = is_short;
}

bool central::trim(std::size_t keep) noexcept
{
    access alone(lock_);
    if (alone.is_guest())
        return false;
    std::size_t const kept = keep / granule_bytes;
    clear_shelves();
    return usage_.dirty > kept && purge_some(alone, false, usage_.dirty - kept) != 0;
}

void central::expect_growth() noexcept
{
    access const alone(lock_);
    if (alone.is_guest())
        return;
    expected_ = usage_.used + usage_.used / 8;
    has_grown_.store(false, std::memory_order_relaxed);
}

usage central::now() noexcept
{
    access const alone(lock_);
    return usage_;
}

// --- while another thread forks ------------------------------------------------

/// Takes granules beyond the frontiers that held when the fork began; none are freed there yet.
run central::take_as_guest(std::size_t granules, std::size_t align) noexcept
{
    std::size_t committed = 0; // counted when the fork is over
    for (window& w : windows) {
        std::size_t first = w.kept / bits_a_group;
        std::size_t at = find_run(w, first, granules, align, free_ones);
        if (at == no_granule) {
            os::growth const moved = make_memory(w, granules + align - 1, committed);
            if (moved == os::growth::blocked)
                continue;
            if (moved == os::growth::refused)
                return {};
            at = find_run(w, first, granules, align, free_ones);
        }
        for_each_group(w, at, granules, [](group& g, std::uint64_t those) { g.used |= those; });
        return {&w, at, true};
    }
    return {};
}

void central::give_as_guest(window& in, std::size_t granule, std::size_t granules) noexcept
{
    slab& s = in.slabs[granule];
    s.start = in.address_of(granule);
    s.granules = static_cast<std::uint32_t>(granules);
    s.next = std::exchange(given_by_guests_, &s);
}

void central::keep() noexcept
{
    for (window& w : windows)
        w.kept = w.frontier();
    lock_.keep();
}

void central::count_guests() noexcept
{
    for (window& w : windows) {
        usage_.committed += w.frontier() - w.kept;
        for (std::size_t g = w.kept / bits_a_group; g < w.frontier() / bits_a_group; ++g)
            usage_.used += static_cast<std::size_t>(std::popcount(w.groups[g].used));
    }
    usage_.used_max = std::max(usage_.used_max, usage_.used);
}

void central::open() noexcept
{
    count_guests();
    for (slab* s = std::exchange(given_by_guests_, nullptr); s != nullptr; s = s->next) {
        window& w = *window_of(s->start);
        release(w, w.granule_of(s->start), s->granules, true);
    }
    lock_.open();
}

void central::forget_guests() noexcept
{
    count_guests();
    given_by_guests_ = nullptr;
}

} // namespace mallard::engine
