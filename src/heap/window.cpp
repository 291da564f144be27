// Windows: reserved, and their frontiers moved.
#include "window.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mallard::engine {

constinit window windows[windows_max];
constinit std::atomic<std::size_t> windows_used{0};
constinit std::atomic<bool> huge_pages{false};

namespace {

constexpr std::size_t bytes_first = window_granules_max * granule_bytes;
constexpr std::size_t placed_least = std::size_t{1} << 36;
constexpr std::size_t reserved_least = std::size_t{1} << 22;

/// 4 MiB at first, then twice as much each time up to 64 MiB.
constexpr std::size_t step_first = (std::size_t{1} << 22) / granule_bytes;
constexpr std::size_t step_max = (std::size_t{1} << 26) / granule_bytes;

constexpr std::size_t granules_a_group = 64;

std::size_t records_bytes(std::size_t granules) noexcept
{
    return align_up(granules * sizeof(slab), granule_bytes);
}
std::size_t map_bytes(std::size_t granules) noexcept
{
    return align_up(granules * sizeof(entry), granule_bytes);
}
std::size_t groups_bytes(std::size_t granules) noexcept
{
    return align_up(granules / granules_a_group * sizeof(group), granule_bytes);
}
/// Bytes of all that comes before the granules.
std::size_t arrays_bytes(std::size_t granules) noexcept
{
    return records_bytes(granules) + map_bytes(granules) + groups_bytes(granules);
}

/// The first MiBs are in small pages also where the system gives large ones unasked: most
/// programs need no more, and would grow to several times their size.
void advise_pages(window const& w, std::size_t from, std::size_t to) noexcept
{
    bool const is_first = from == 0;
    if (is_first || huge_pages.load(std::memory_order_relaxed))
        os::advise_huge(w.address_of(from), (to - from) * granule_bytes, !is_first);
}

/// Bytes of a window with so many bytes of granules.
std::size_t whole_bytes(std::size_t bytes) noexcept
{
    return arrays_bytes(bytes / granule_bytes) + bytes;
}

void lay_out(window& w, std::byte* at, std::size_t granules) noexcept
{
    w.slabs = reinterpret_cast<slab*>(at);
    w.map = reinterpret_cast<std::atomic<entry>*>(at + records_bytes(granules));
    w.groups = reinterpret_cast<group*>(at + records_bytes(granules) + map_bytes(granules));
    w.base = reinterpret_cast<std::uintptr_t>(at + arrays_bytes(granules));
    w.step = step_first;
    w.room = granules;
}

// The functions below find a place for a window of so many bytes; null: there is none.

/// The upper half of a free range: the next mappings of others come from above or, with
/// `ulimit -s unlimited`, from below.
std::byte* where_it_is_free(std::size_t bytes) noexcept
{
    std::byte* const at = os::reserve(2 * bytes, granule_bytes);
    return at != nullptr && os::unmap(at, 2 * bytes) ? at + bytes : nullptr;
}
/// A place below the system's current mappings, if a limit prevents the search above.
std::byte* below_others(std::size_t bytes) noexcept
{
    std::byte* const lowest = where_it_is_free(granule_bytes);
    return reinterpret_cast<std::uintptr_t>(lowest) / 2 > bytes ? lowest - bytes : nullptr;
}

/// Reserves the whole address space of the window, where no place can be chosen (Valgrind).
bool reserve(window& w, std::size_t bytes) noexcept
{
    std::byte* const at = os::reserve(whole_bytes(bytes), granule_bytes);
    if (at == nullptr)
        return false;
    lay_out(w, at, bytes / granule_bytes);
    w.is_reserved = true;
    return true;
}

/// Commits an array of the window up to `count` elements; `mapped` of its bytes are committed.
template <class T>
os::growth grow(window const& w, T* array, std::size_t& mapped, std::size_t count) noexcept
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
os::growth grow(window& w, std::size_t granules) noexcept
{
    std::size_t mapped = w.frontier() * granule_bytes;
    os::growth grown = grow(w, w.slabs, w.mapped[0], granules);
    if (grown == os::growth::made)
        grown = grow(w, w.map, w.mapped[1], granules);
    if (grown == os::growth::made)
        grown = grow(w, w.groups, w.mapped[2], granules / granules_a_group);
    if (grown == os::growth::made)
        grown = grow(w, w.address_of(0), mapped, granules * granule_bytes);
    return grown;
}

/// Unmaps the arrays of a window that got no granule.
void forget_place(window& w) noexcept
{
    void* const arrays[] = {w.slabs, w.map, w.groups};
    for (std::size_t i = 0; i < std::size(arrays); ++i)
        if (std::size_t const mapped = std::exchange(w.mapped[i], 0))
            os::unmap(static_cast<std::byte*>(arrays[i]), mapped);
    w.room = 0;
}

} // namespace

os::growth move_frontier(window& w, std::size_t at_least, std::size_t& committed) noexcept
{
    std::size_t const before = w.frontier();
    std::size_t const left = w.room - before;
    if (at_least > left)
        return os::growth::blocked;
    // A whole number of groups, whose bits are one word.
    std::size_t const least =
        std::min(left, align_up(before + at_least, granules_a_group) - before);
    for (std::size_t step = std::min(left, std::max(w.step, least));;
         step = std::max(step / 4 / granules_a_group * granules_a_group, least)) {
        os::growth const grown = grow(w, before + step);
        if (grown == os::growth::made) {
            advise_pages(w, before, before + step);
            w.step = std::min(2 * w.step, step_max);
            w.granules.store(before + step, std::memory_order_relaxed);
            committed += step;
            return grown;
        }
        if (step != least)
            continue;
        if (grown == os::growth::blocked)
            w.room = before + least - granules_a_group;
        return grown;
    }
}

os::growth add_window(std::size_t at_least, std::size_t& committed) noexcept
{
    std::size_t const used = windows_used.load(std::memory_order_relaxed);
    if (used == windows_max || at_least > window_granules_max)
        return os::growth::refused;
    window& w = windows[used];
    std::size_t const least = at_least * granule_bytes;
    for (auto find : {where_it_is_free, below_others})
        for (std::size_t bytes = bytes_first; bytes >= std::max(placed_least, least); bytes /= 2) {
            std::byte* const at = find(whole_bytes(bytes));
            if (at == nullptr)
                continue;
            lay_out(w, at, bytes / granule_bytes);
            // Registered now: a fork may happen before the window is finished.
            windows_used.store(used + 1, std::memory_order_release);
            os::growth const moved = move_frontier(w, at_least, committed);
            if (moved != os::growth::blocked)
                return moved;
            windows_used.store(used, std::memory_order_relaxed);
            forget_place(w);
        }
    // Under a limit, leave half of it to stacks, files and the next window.
    std::size_t const left = os::address_space_left();
    for (std::size_t bytes = bytes_first; bytes >= std::max(reserved_least, least); bytes /= 2)
        if (bytes <= left / 2 && reserve(w, bytes)) {
            windows_used.store(used + 1, std::memory_order_release);
            return move_frontier(w, at_least, committed);
        }
    return os::growth::refused;
}

} // namespace mallard::engine
