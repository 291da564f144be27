// Runs of granules: found, kept, given back to the system.
#include "central.hpp"

#include "limits.hpp"
#include "window.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mallard::engine {

constinit central the_central;

namespace {

constexpr std::size_t bits_a_group = 64;
constexpr std::size_t none = ~std::size_t{0};
/// Dirty granules that may lie idle whatever is in use.
constexpr std::size_t dirty_least = (std::size_t{4} << 20) / granule_bytes;
constexpr std::size_t bonus_least = (std::size_t{64} << 20) / granule_bytes;
/// In one go, with the lock given up meanwhile.
constexpr std::size_t purge_step = (std::size_t{16} << 20) / granule_bytes;

constexpr std::uint64_t bits(std::size_t first, std::size_t count) noexcept
{
    return (count == bits_a_group ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << first;
}

/// Calls `f(group, bits)` for the bits of a run, group by group.
template <class F>
void for_each_group(window& w, std::size_t granule, std::size_t count, F f) noexcept
{
    while (count != 0) {
        std::size_t const first = granule % bits_a_group;
        std::size_t const here = std::min(count, bits_a_group - first);
        f(w.groups[granule / bits_a_group], bits(first, here));
        granule += here;
        count -= here;
    }
}

/// Where so many bits in a row begin.
std::uint64_t begins_of(std::uint64_t bits, std::size_t count) noexcept
{
    for (std::size_t covered = 1; covered < count;) {
        std::size_t const step = std::min(covered, count - covered);
        bits &= bits >> step;
        covered += step;
    }
    return bits;
}

/// The first multiple of `align` from there on.
std::size_t aligned_from(const window& w, std::size_t granule, std::size_t align) noexcept
{
    std::size_t const base = w.base / granule_bytes;
    return align_up(base + granule, align) - base;
}

/// Which granules of a group have such an address.
std::uint64_t aligned_ones(const window& w, std::size_t group, std::size_t align) noexcept
{
    std::size_t const first = group * bits_a_group;
    std::size_t const skipped = aligned_from(w, first, align) - first;
    if (skipped >= bits_a_group)
        return 0;
    return (align < bits_a_group ? ~std::uint64_t{0} / bits(0, align) : 1) << skipped;
}

/// The lowest run of `count` among those that `candidates(group)` says; `none` if there is
/// none. Its address is a multiple of `align` granules. `first` is where to begin, and moves
/// on over groups that have nothing.
template <class F>
std::size_t find_run(const window& w, std::size_t& first, std::size_t count, std::size_t align,
                     F candidates) noexcept
{
    std::size_t const groups = w.frontier / bits_a_group;
    while (first < groups && candidates(w.groups[first]) == 0)
        first += 1;
    std::size_t length = 0; // of the run that ends where the group begins
    for (std::size_t g = first; g < groups; ++g) {
        std::uint64_t const those = candidates(w.groups[g]);
        std::size_t const here = g * bits_a_group;
        std::size_t const begin = aligned_from(w, here - length, align);
        if (begin + count <= here + static_cast<std::size_t>(std::countr_one(those)))
            return begin;
        if (count < bits_a_group) {
            std::uint64_t const begins = begins_of(those, count) & aligned_ones(w, g, align);
            if (begins != 0)
                return here + static_cast<std::size_t>(std::countr_zero(begins));
        }
        auto const last = static_cast<std::size_t>(std::countl_one(those));
        length = last == bits_a_group ? length + last : last;
    }
    return none;
}

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
    at.least = count;
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

template <class F>
run central::take_lowest(std::size_t window::* first, std::size_t granules, std::size_t align,
                         F candidates) noexcept
{
    window* const end = windows + windows_used.load(std::memory_order_relaxed);
    for (window* w = windows; w != end; ++w) {
        std::size_t const at = find_run(*w, w->*first, granules, align, candidates);
        if (at != none)
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
    for (window& w : windows) {
        std::size_t const needed = granules + align - 1;
        if (w.granules == 0 && add_window(needed) == nullptr)
            return {};
        // What is free before the frontier counts, but not more than that.
        std::size_t const before = w.frontier;
        if (needed > w.granules - before)
            continue;
        // What is refused here is refused anywhere: another window would be no help.
        if (!move_frontier(w, needed))
            return {};
        usage_.committed += w.frontier - before;
        return claim(w, find_run(w, w.first_free, granules, align, free_ones), granules);
    }
    return {};
}

run central::take_from(shelf& at, std::size_t granules, std::size_t align) noexcept
{
    if (!the_limits.admit(granules * granule_bytes))
        return {};
    os::hold const alone(lock_);
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
    if (r.in == nullptr)
        r = take_fresh(granules, align);
    if (r.in == nullptr)
        the_limits.discharge(granules * granule_bytes);
    else
        purge_if_due();
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

void central::purge_if_due() noexcept
{
    if (usage_.dirty <= dirty_max() || refused_) [[likely]]
        return;
    clear_shelves();
    purge_some(false, usage_.dirty - dirty_max() / 4 * 3);
}

void central::give(window& in, std::size_t granule, std::size_t granules) noexcept
{
    in.mark(granule, granules, 0);
    the_limits.discharge(granules * granule_bytes);
    os::hold const alone(lock_);
    release(in, granule, granules, true);
    purge_if_due();
}

void central::give_of_class(window& in, std::size_t granule) noexcept
{
    slab& s = in.slabs[granule];
    in.mark(granule, s.index < run_class_first ? s.granules : 1, 0);
    the_limits.discharge(s.granules * granule_bytes);
    os::hold const alone(lock_);
    s.next = std::exchange(shelves_[s.index].first, &s);
    shelves_[s.index].count += 1;
    shelved_ |= std::uint64_t{1} << s.index;
    usage_.dirty += s.granules;
    usage_.used -= s.granules;
    purge_if_due();
}

bool central::extend(window& in, std::size_t granule, std::size_t granules, std::size_t more,
                     bool& zero) noexcept
{
    if (!the_limits.admit(more * granule_bytes))
        return false;
    os::hold const alone(lock_);
    std::size_t const end = granule + granules;
    if (!is_free(in, end, more) && (clear_shelves(), !is_free(in, end, more))) {
        the_limits.discharge(more * granule_bytes);
        return false;
    }
    zero = claim(in, end, more).zero;
    purge_if_due();
    return true;
}

/// Moves the frontier if the run lies beyond it.
bool central::is_free(window& in, std::size_t granule, std::size_t granules) noexcept
{
    if (granules > in.granules - granule)
        return false;
    std::uint64_t used = 0;
    std::size_t const there = std::min(granules, in.frontier - granule);
    for_each_group(in, granule, there,
                   [&](group& g, std::uint64_t those) { used |= g.used & those; });
    if (used != 0)
        return false;
    std::size_t const before = in.frontier;
    if (there < granules && !move_frontier(in, granules - there))
        return false;
    usage_.committed += in.frontier - before;
    return true;
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
void central::purge_run(window& w, std::size_t granule, std::size_t granules) noexcept
{
    std::size_t const used_max = usage_.used_max;
    std::size_t const lately = std::exchange(purged_lately_, 0);
    claim(w, granule, granules);
    usage_.used_max = used_max;
    lock_.give();
    bool const gone = os::purge(w.address_of(granule), granules * granule_bytes);
    lock_.take();
    release(w, granule, granules, !gone);
    refused_ |= !gone;
    purged_lately_ += lately;
    if (gone) {
        usage_.purged += granules;
        purged_lately_ += granules;
    }
}

/// From the highest down: the lowest are wanted first. Runs end where groups do.
std::size_t central::purge_some(bool only_aged, std::size_t granules_max) noexcept
{
    std::size_t done = 0;
    for (window& w : windows)
        for (std::size_t g = w.frontier / bits_a_group; g-- != 0 && done < granules_max;)
            for (std::uint64_t left = only_aged ? w.groups[g].aged : w.groups[g].dirty;
                 left != 0 && done < granules_max;) {
                auto const zeros = static_cast<std::size_t>(std::countl_zero(left));
                auto const ones = static_cast<std::size_t>(std::countl_one(left << zeros));
                std::size_t const first = bits_a_group - zeros - ones;
                purge_run(w, g * bits_a_group + first, ones);
                done += ones;
                // Others may have come and gone meanwhile.
                left = (only_aged ? w.groups[g].aged : w.groups[g].dirty) &
                       (first == 0 ? 0 : bits(0, first));
            }
    return done;
}

void central::age() noexcept
{
    os::hold const alone(lock_);
    // What lay idle for an epoch needed no room.
    bonus_ -= std::min(bonus_, purge_some(true, purge_step));
    purged_lately_ -= purged_lately_ / 8;
    refused_ = false; // one try of all an epoch
    for (shelf& at : shelves_)
        keep_on_shelf(at, at.count - at.least);
    for (window& w : windows)
        for (std::size_t g = 0; g < w.frontier / bits_a_group; ++g)
            w.groups[g].aged = w.groups[g].dirty;
}

void central::expect_shortage(bool is_short) noexcept
{
    os::hold const alone(lock_);
    short_ = is_short;
}

bool central::trim(std::size_t keep) noexcept
{
    os::hold const alone(lock_);
    std::size_t const kept = keep / granule_bytes;
    clear_shelves();
    return usage_.dirty > kept && purge_some(false, usage_.dirty - kept) != 0;
}

usage central::now() noexcept
{
    os::hold const alone(lock_);
    return usage_;
}

} // namespace mallard::engine
