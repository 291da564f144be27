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
    std::size_t const base = w.base / granule_bytes;
    std::size_t length = 0; // of the run that ends where the search is
    for (std::size_t g = first; g < groups; ++g) {
        std::uint64_t left = candidates(w.groups[g]);
        std::size_t at = g * bits_a_group;
        if (left == 0) {
            length = 0;
            continue;
        }
        for (std::size_t end = at + bits_a_group; at < end;) {
            auto const ones = static_cast<std::size_t>(std::countr_one(left));
            std::size_t const begin = align_up(base + at - length, align) - base;
            if (begin + count <= at + ones)
                return begin;
            length += ones;
            at += ones;
            if (at == end)
                break;
            length = 0;
            left = ones == bits_a_group ? 0 : left >> ones;
            auto const zeros = static_cast<std::size_t>(std::countr_zero(left));
            if (zeros == bits_a_group)
                break;
            at += zeros;
            left >>= zeros;
        }
    }
    return none;
}

std::uint64_t free_ones(group const& g) noexcept
{
    return ~g.used;
}
std::uint64_t dirty_ones(group const& g) noexcept
{
    return g.dirty;
}

} // namespace

run central::claim(window& w, std::size_t granule, std::size_t granules) noexcept
{
    std::uint64_t dirty = 0;
    std::size_t count = 0;
    for_each_group(w, granule, granules, [&](group& g, std::uint64_t those) {
        dirty |= g.dirty & those;
        count += static_cast<std::size_t>(std::popcount(g.dirty & those));
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
    return {&w, granule, dirty == 0};
}

run central::take_below_frontiers(std::size_t granules, std::size_t align) noexcept
{
    if (usage_.dirty >= granules)
        for (window& w : windows) {
            if (w.granules == 0)
                break;
            std::size_t const at = find_run(w, w.first_dirty, granules, align, dirty_ones);
            if (at != none)
                return claim(w, at, granules);
        }
    for (window& w : windows) {
        if (w.granules == 0)
            break;
        std::size_t const at = find_run(w, w.first_free, granules, align, free_ones);
        if (at != none)
            return claim(w, at, granules);
    }
    return {};
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

run central::take(std::size_t granules, std::size_t align) noexcept
{
    if (!the_limits.admit(granules * granule_bytes))
        return {};
    os::hold const alone(lock_);
    run r;
    if (granules <= usage_.committed - usage_.used)
        r = take_below_frontiers(granules, align);
    if (r.in == nullptr)
        r = take_fresh(granules, align);
    if (r.in == nullptr)
        the_limits.discharge(granules * granule_bytes);
    return r;
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

void central::give(window& in, std::size_t granule, std::size_t granules) noexcept
{
    in.mark(granule, granules, 0);
    the_limits.discharge(granules * granule_bytes);
    os::hold const alone(lock_);
    release(in, granule, granules, true);
    if (usage_.dirty > dirty_max() && !refused_) [[unlikely]]
        purge_some(false, usage_.dirty - dirty_max() / 4 * 3);
}

bool central::extend(window& in, std::size_t granule, std::size_t granules, std::size_t more,
                     bool& zero) noexcept
{
    if (!the_limits.admit(more * granule_bytes))
        return false;
    os::hold const alone(lock_);
    std::size_t const end = granule + granules;
    if (!is_free(in, end, more)) {
        the_limits.discharge(more * granule_bytes);
        return false;
    }
    zero = claim(in, end, more).zero;
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

/// What may lie idle, in granules.
std::size_t central::dirty_max() const noexcept
{
    return short_ ? dirty_least : std::max(dirty_least, usage_.used / 4) + bonus_;
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
    purged_lately_ /= 2;
    refused_ = false; // one try of all an epoch
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
    return usage_.dirty > kept && purge_some(false, usage_.dirty - kept) != 0;
}

usage central::now() noexcept
{
    os::hold const alone(lock_);
    return usage_;
}

} // namespace mallard::engine
