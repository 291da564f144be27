// Finds adjacent free slices in the bits of a reservation. A slice is 16 KiB of address space. A
// group contains the bits of 64 slices.
#pragma once

#include "reservation.hpp"

#include <algorithm>
#include <bit>

namespace mallard::engine {

inline constexpr std::size_t bits_per_group = 64;
inline constexpr std::size_t no_slice = ~std::size_t{0};

constexpr std::uint64_t bits(std::size_t first, std::size_t count) noexcept
{
    return (count == bits_per_group ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << first;
}

/// Calls `f(group, bits)` for each group with slices of a span. `bits` selects the slices of the
/// span in that group.
template <class F>
void for_each_group(reservation& r, std::size_t slice, std::size_t count, F f) noexcept
{
    while (count != 0) {
        std::size_t const first = slice % bits_per_group;
        std::size_t const in_group = std::min(count, bits_per_group - first);
        f(r.groups[slice / bits_per_group], bits(first, in_group));
        slice += in_group;
        count -= in_group;
    }
}

/// Returns the bits at which a run of `count` set bits begins.
inline std::uint64_t begins_of(std::uint64_t bits, std::size_t count) noexcept
{
    for (std::size_t covered = 1; covered < count;) {
        std::size_t const step = std::min(covered, count - covered);
        bits &= bits >> step;
        covered += step;
    }
    return bits;
}

/// Returns the first slice, from `slice` on, whose address is a multiple of `align` slices.
inline std::size_t aligned_from(const reservation& r, std::size_t slice, std::size_t align) noexcept
{
    std::size_t const base = r.base / slice_bytes;
    return align_up(base + slice, align) - base;
}

/// Returns the slices of a group whose addresses are multiples of `align` slices, as bits.
inline std::uint64_t aligned_ones(const reservation& r, std::size_t group,
                                  std::size_t align) noexcept
{
    std::size_t const first = group * bits_per_group;
    std::size_t const skipped = aligned_from(r, first, align) - first;
    if (skipped >= bits_per_group)
        return 0;
    return (align < bits_per_group ? ~std::uint64_t{0} / bits(0, align) : 1) << skipped;
}

/// Finds the lowest run of `count` adjacent slices whose bits are set in `candidates(group)`. The
/// address of the run is a multiple of `align` slices. Returns `no_slice` if there is no such run.
/// The search starts at the group `first`, and advances `first` over groups without candidates.
template <class F>
std::size_t find_run(const reservation& r, std::size_t& first, std::size_t count, std::size_t align,
                     F candidates) noexcept
{
    std::size_t const groups = r.commit_limit() / bits_per_group;
    while (first < groups && candidates(r.groups[first]) == 0)
        first += 1;
    std::size_t length = 0; // length of the run of candidates that ends where the group begins
    for (std::size_t g = first; g < groups; ++g) {
        std::uint64_t const those = candidates(r.groups[g]);
        std::size_t const group_begin = g * bits_per_group;
        std::size_t const begin = aligned_from(r, group_begin - length, align);
        if (begin + count <= group_begin + static_cast<std::size_t>(std::countr_one(those)))
            return begin;
        if (count < bits_per_group) {
            std::uint64_t const begins = begins_of(those, count) & aligned_ones(r, g, align);
            if (begins != 0)
                return group_begin + static_cast<std::size_t>(std::countr_zero(begins));
        }
        auto const last = static_cast<std::size_t>(std::countl_one(those));
        length = last == bits_per_group ? length + last : last;
    }
    return no_slice;
}

} // namespace mallard::engine
