// Opens reservations and raises their commit limits. The commit limit of a reservation is the end
// of its readable and writable slices.
#include "reservation.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mallard::engine {

constinit reservation reservations[reservations_max];
constinit std::atomic<std::size_t> reservations_used{0};
constinit std::atomic<bool> huge_pages{false};

namespace {

constexpr std::size_t bytes_first = reservation_slices_max * slice_bytes;
constexpr std::size_t placed_least = std::size_t{1} << 36;
constexpr std::size_t reserved_least = std::size_t{1} << 22;

/// The commit limit rises by 4 MiB at first. Each later increase is twice as large, up to 64 MiB.
constexpr std::size_t step_first = (std::size_t{1} << 22) / slice_bytes;
constexpr std::size_t step_max = (std::size_t{1} << 26) / slice_bytes;

constexpr std::size_t slices_per_group = 64;

// Each array occupies whole slices and whole pages, so that it shares no page with another array.
constexpr std::size_t array_align = std::max(slice_bytes, os::page_bytes_max);

std::size_t records_bytes(std::size_t slices) noexcept
{
    return align_up(slices * sizeof(slab), array_align);
}
std::size_t map_bytes(std::size_t slices) noexcept
{
    return align_up(slices * sizeof(entry), array_align);
}
std::size_t groups_bytes(std::size_t slices) noexcept
{
    return align_up(slices / slices_per_group * sizeof(slice_group), array_align);
}
/// Returns the size of the arrays that precede the slices of a reservation.
std::size_t arrays_bytes(std::size_t slices) noexcept
{
    return records_bytes(slices) + map_bytes(slices) + groups_bytes(slices);
}

/// Requests small pages for the first memory of a reservation, even if the system uses huge pages
/// by default. Most programs need no more memory, and huge pages would multiply their memory use.
/// For later memory, requests huge pages if the user wants them.
void advise_pages(reservation const& r, std::size_t from, std::size_t to) noexcept
{
    bool const is_first = from == 0;
    if (is_first || huge_pages.load(std::memory_order_relaxed))
        os::advise_huge(r.address_of(from), (to - from) * slice_bytes, !is_first);
}

/// Returns the size of the address space that a reservation needs for its arrays and for `bytes`
/// bytes of slices.
std::size_t whole_bytes(std::size_t bytes) noexcept
{
    return arrays_bytes(bytes / slice_bytes) + bytes;
}

void lay_out(reservation& r, std::byte* at, std::size_t slices) noexcept
{
    r.slabs = reinterpret_cast<slab*>(at);
    r.map = reinterpret_cast<std::atomic<entry>*>(at + records_bytes(slices));
    r.groups = reinterpret_cast<slice_group*>(at + records_bytes(slices) + map_bytes(slices));
    r.base = reinterpret_cast<std::uintptr_t>(at + arrays_bytes(slices));
    r.step = step_first;
    r.room = slices;
}

/// Returns the lower end of the address space in use. This is the address of a trial mapping, or
/// the start of the lowest reservation if that start is lower. Below the result are only mappings
/// for which the program itself chose the address. The system will place further mappings below the
/// trial mapping or, with `ulimit -s unlimited`, above. Returns null if the trial mapping fails.
std::byte* lowest_in_use() noexcept
{
    std::byte* lowest = os::reserve(slice_bytes, slice_bytes);
    if (lowest == nullptr || !os::unmap(lowest, slice_bytes))
        return nullptr;
    for (reservation const& r : reservations)
        if (r.room != 0)
            lowest = std::min(lowest, reinterpret_cast<std::byte*>(r.slabs));
    return lowest;
}

/// Reserves the whole address space of a reservation, and leaves as much free for stacks, files and
/// the next reservation. The function is for systems that do not let a program choose the addresses
/// of mappings, such as Valgrind.
bool reserve(reservation& r, std::size_t bytes) noexcept
{
    std::size_t const whole = whole_bytes(bytes);
    std::byte* const at = os::reserve(2 * whole, slice_bytes);
    if (at == nullptr)
        return false;
    os::unmap(at + whole, whole); // if this fails, the second half stays untouched
    lay_out(r, at, bytes / slice_bytes);
    r.is_reserved = true;
    return true;
}

/// Commits the first `count` elements of an array, of which `mapped` bytes are committed already.
template <class T>
os::growth grow(reservation const& r, T* array, std::size_t& mapped, std::size_t count) noexcept
{
    std::size_t const bytes = align_up(count * sizeof(T), os::page_bytes_max);
    if (bytes <= mapped)
        return os::growth::made;
    std::byte* const at = reinterpret_cast<std::byte*>(array) + mapped;
    os::growth const grown = !r.is_reserved                   ? os::map_at(at, bytes - mapped)
                             : os::commit(at, bytes - mapped) ? os::growth::made
                                                              : os::growth::refused;
    if (grown == os::growth::made)
        mapped = bytes;
    return grown;
}

/// Grows all arrays. If some arrays cannot grow, the other arrays keep their new memory, because
/// the next attempt needs that memory.
os::growth grow(reservation& r, std::size_t slices) noexcept
{
    std::size_t mapped = r.commit_limit() * slice_bytes;
    os::growth grown = grow(r, r.slabs, r.mapped[0], slices);
    if (grown == os::growth::made)
        grown = grow(r, r.map, r.mapped[1], slices);
    if (grown == os::growth::made)
        grown = grow(r, r.groups, r.mapped[2], slices / slices_per_group);
    if (grown == os::growth::made)
        grown = grow(r, r.address_of(0), mapped, slices * slice_bytes);
    return grown;
}

/// Unmaps the arrays of a reservation for which no slices could be mapped.
void forget_place(reservation& r) noexcept
{
    void* const arrays[] = {r.slabs, r.map, r.groups};
    for (std::size_t i = 0; i < std::size(arrays); ++i)
        if (std::size_t const mapped = std::exchange(r.mapped[i], 0))
            os::unmap(static_cast<std::byte*>(arrays[i]), mapped);
    r.room = 0;
}

} // namespace

os::growth raise_commit_limit(reservation& r, std::size_t at_least, std::size_t& committed) noexcept
{
    std::size_t const before = r.commit_limit();
    std::size_t const left = r.room - before;
    if (at_least > left)
        return os::growth::blocked;
    // Round up to whole groups of 64 slices.
    std::size_t const least =
        std::min(left, align_up(before + at_least, slices_per_group) - before);
    for (std::size_t step = std::min(left, std::max(r.step, least));;
         step = std::max(step / 4 / slices_per_group * slices_per_group, least)) {
        os::growth const grown = grow(r, before + step);
        if (grown == os::growth::made) {
            advise_pages(r, before, before + step);
            r.step = std::min(2 * r.step, step_max);
            r.slices.store(before + step, std::memory_order_relaxed);
            committed += step;
            return grown;
        }
        if (step != least)
            continue;
        if (grown == os::growth::blocked)
            r.room = before + least - slices_per_group;
        return grown;
    }
}

namespace {

/// Opens the next reservation at `at`. If the result is `blocked`, no reservation was opened.
os::growth place(reservation& r, std::byte* at, std::size_t bytes, std::size_t at_least,
                 std::size_t& committed) noexcept
{
    lay_out(r, at, bytes / slice_bytes);
    // Register the reservation before it gets memory, so that after a fork in between, the child
    // has a record of all mapped memory.
    std::size_t const used = reservations_used.load(std::memory_order_relaxed);
    reservations_used.store(used + 1, std::memory_order_release);
    os::growth const moved = raise_commit_limit(r, at_least, committed);
    if (moved == os::growth::blocked) {
        reservations_used.store(used, std::memory_order_relaxed);
        forget_place(r);
    }
    return moved;
}

} // namespace

os::growth add_reservation(std::size_t at_least, std::size_t& committed) noexcept
{
    std::size_t const used = reservations_used.load(std::memory_order_relaxed);
    if (used == reservations_max || at_least > reservation_slices_max)
        return os::growth::refused;
    if (used == 0)
        tag_decoy_caches();
    reservation& r = reservations[used];
    std::size_t const least = at_least * slice_bytes;
    // Place the reservation below the lowest address that the process uses, so that the
    // reservation can grow up to that address. If another mapping is in the way, try lower
    // addresses. Addresses below half of the lowest one stay free, because a program may need small
    // addresses for other mappings.
    std::byte* const lowest = lowest_in_use();
    for (std::size_t bytes = bytes_first; bytes >= std::max(placed_least, least); bytes /= 2)
        for (std::size_t below = whole_bytes(bytes);
             below <= reinterpret_cast<std::uintptr_t>(lowest) / 2; below *= 2) {
            os::growth const moved = place(r, lowest - below, bytes, at_least, committed);
            if (moved != os::growth::blocked)
                return moved;
        }
    for (std::size_t bytes = bytes_first; bytes >= std::max(reserved_least, least); bytes /= 2)
        if (reserve(r, bytes)) {
            reservations_used.store(used + 1, std::memory_order_release);
            return raise_commit_limit(r, at_least, committed);
        }
    return os::growth::refused;
}

} // namespace mallard::engine
