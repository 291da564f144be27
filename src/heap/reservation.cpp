// Reservations: made, and their commit limits moved.
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

/// 4 MiB at first, then twice as much each time up to 64 MiB.
constexpr std::size_t step_first = (std::size_t{1} << 22) / slice_bytes;
constexpr std::size_t step_max = (std::size_t{1} << 26) / slice_bytes;

constexpr std::size_t slices_per_group = 64;

std::size_t records_bytes(std::size_t slices) noexcept
{
    return align_up(slices * sizeof(slab), slice_bytes);
}
std::size_t map_bytes(std::size_t slices) noexcept
{
    return align_up(slices * sizeof(entry), slice_bytes);
}
std::size_t groups_bytes(std::size_t slices) noexcept
{
    return align_up(slices / slices_per_group * sizeof(group), slice_bytes);
}
/// Bytes of all that comes before the slices.
std::size_t arrays_bytes(std::size_t slices) noexcept
{
    return records_bytes(slices) + map_bytes(slices) + groups_bytes(slices);
}

/// The first MiBs are in small pages also where the system gives large ones unasked: most
/// programs need no more, and would grow to several times their size.
void advise_pages(reservation const& w, std::size_t from, std::size_t to) noexcept
{
    bool const is_first = from == 0;
    if (is_first || huge_pages.load(std::memory_order_relaxed))
        os::advise_huge(w.address_of(from), (to - from) * slice_bytes, !is_first);
}

/// Bytes of a reservation with so many bytes of slices.
std::size_t whole_bytes(std::size_t bytes) noexcept
{
    return arrays_bytes(bytes / slice_bytes) + bytes;
}

void lay_out(reservation& w, std::byte* at, std::size_t slices) noexcept
{
    w.slabs = reinterpret_cast<slab*>(at);
    w.map = reinterpret_cast<std::atomic<entry>*>(at + records_bytes(slices));
    w.groups = reinterpret_cast<group*>(at + records_bytes(slices) + map_bytes(slices));
    w.base = reinterpret_cast<std::uintptr_t>(at + arrays_bytes(slices));
    w.step = step_first;
    w.room = slices;
}

// The functions below find a place for a reservation of so many bytes; null: there is none.

/// The upper half of a free range: the next mappings of others come from above or, with
/// `ulimit -s unlimited`, from below.
std::byte* where_it_is_free(std::size_t bytes) noexcept
{
    std::byte* const at = os::reserve(2 * bytes, slice_bytes);
    return at != nullptr && os::unmap(at, 2 * bytes) ? at + bytes : nullptr;
}
/// A place below the system's current mappings, if a limit prevents the search above.
std::byte* below_others(std::size_t bytes) noexcept
{
    std::byte* const lowest = where_it_is_free(slice_bytes);
    return reinterpret_cast<std::uintptr_t>(lowest) / 2 > bytes ? lowest - bytes : nullptr;
}

/// Reserves the whole address space of the reservation, where no place can be chosen (Valgrind).
bool reserve(reservation& w, std::size_t bytes) noexcept
{
    std::byte* const at = os::reserve(whole_bytes(bytes), slice_bytes);
    if (at == nullptr)
        return false;
    lay_out(w, at, bytes / slice_bytes);
    w.is_reserved = true;
    return true;
}

/// Commits an array of the reservation up to `count` elements; `mapped` of its bytes are committed.
template <class T>
os::growth grow(reservation const& w, T* array, std::size_t& mapped, std::size_t count) noexcept
{
    std::size_t const bytes = align_up(count * sizeof(T), page_bytes);
    if (bytes <= mapped)
        return os::growth::made;
    std::byte* const at = reinterpret_cast<std::byte*>(array) + mapped;
    os::growth const grown = !w.is_reserved                   ? os::map_at(at, bytes - mapped)
                             : os::commit(at, bytes - mapped) ? os::growth::made
                                                              : os::growth::refused;
    if (grown == os::growth::made)
        mapped = bytes;
    return grown;
}

/// If only a part of the arrays could grow, that part stays: the next attempt needs it.
os::growth grow(reservation& w, std::size_t slices) noexcept
{
    std::size_t mapped = w.commit_limit() * slice_bytes;
    os::growth grown = grow(w, w.slabs, w.mapped[0], slices);
    if (grown == os::growth::made)
        grown = grow(w, w.map, w.mapped[1], slices);
    if (grown == os::growth::made)
        grown = grow(w, w.groups, w.mapped[2], slices / slices_per_group);
    if (grown == os::growth::made)
        grown = grow(w, w.address_of(0), mapped, slices * slice_bytes);
    return grown;
}

/// Unmaps the arrays of a reservation that got no slice.
void forget_place(reservation& w) noexcept
{
    void* const arrays[] = {w.slabs, w.map, w.groups};
    for (std::size_t i = 0; i < std::size(arrays); ++i)
        if (std::size_t const mapped = std::exchange(w.mapped[i], 0))
            os::unmap(static_cast<std::byte*>(arrays[i]), mapped);
    w.room = 0;
}

} // namespace

os::growth raise_commit_limit(reservation& w, std::size_t at_least, std::size_t& committed) noexcept
{
    std::size_t const before = w.commit_limit();
    std::size_t const left = w.room - before;
    if (at_least > left)
        return os::growth::blocked;
    // A whole number of groups, whose bits are one word.
    std::size_t const least =
        std::min(left, align_up(before + at_least, slices_per_group) - before);
    for (std::size_t step = std::min(left, std::max(w.step, least));;
         step = std::max(step / 4 / slices_per_group * slices_per_group, least)) {
        os::growth const grown = grow(w, before + step);
        if (grown == os::growth::made) {
            advise_pages(w, before, before + step);
            w.step = std::min(2 * w.step, step_max);
            w.slices.store(before + step, std::memory_order_relaxed);
            committed += step;
            return grown;
        }
        if (step != least)
            continue;
        if (grown == os::growth::blocked)
            w.room = before + least - slices_per_group;
        return grown;
    }
}

os::growth add_reservation(std::size_t at_least, std::size_t& committed) noexcept
{
    std::size_t const used = reservations_used.load(std::memory_order_relaxed);
    if (used == reservations_max || at_least > reservation_slices_max)
        return os::growth::refused;
    reservation& w = reservations[used];
    std::size_t const least = at_least * slice_bytes;
    for (auto find : {where_it_is_free, below_others})
        for (std::size_t bytes = bytes_first; bytes >= std::max(placed_least, least); bytes /= 2) {
            std::byte* const at = find(whole_bytes(bytes));
            if (at == nullptr)
                continue;
            lay_out(w, at, bytes / slice_bytes);
            // Registered now: a fork may happen before the reservation is finished.
            reservations_used.store(used + 1, std::memory_order_release);
            os::growth const moved = raise_commit_limit(w, at_least, committed);
            if (moved != os::growth::blocked)
                return moved;
            reservations_used.store(used, std::memory_order_relaxed);
            forget_place(w);
        }
    // Under a limit, leave half of it to stacks, files and the next reservation.
    std::size_t const left = os::address_space_left();
    for (std::size_t bytes = bytes_first; bytes >= std::max(reserved_least, least); bytes /= 2)
        if (bytes <= left / 2 && reserve(w, bytes)) {
            reservations_used.store(used + 1, std::memory_order_release);
            return raise_commit_limit(w, at_least, committed);
        }
    return os::growth::refused;
}

} // namespace mallard::engine
