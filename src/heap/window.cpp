// Windows: reserved, and their frontiers moved.
#include "window.hpp"

#include <algorithm>

namespace mallard::engine {

constinit window windows[windows_max];
constinit std::atomic<std::size_t> windows_used{0};
constinit std::atomic<bool> huge_pages{false};

namespace {

constexpr std::size_t bytes_first = std::size_t{1} << 40;
constexpr std::size_t bytes_least = std::size_t{1} << 22;
constexpr std::size_t guard_bytes = granule_bytes;

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

/// An array that is memory for `from` of its elements becomes one for `to`.
template <class T>
bool commit_elements(T* array, std::size_t from, std::size_t to) noexcept
{
    std::size_t const begin = align_up(from * sizeof(T), page_bytes);
    std::size_t const end = align_up(to * sizeof(T), page_bytes);
    return begin == end || os::commit(reinterpret_cast<std::byte*>(array) + begin, end - begin);
}

/// The first MiBs are in small pages also where the system gives large ones unasked: most
/// programs need no more, and would grow to several times their size.
void advise_pages(window const& w, std::size_t from, std::size_t to) noexcept
{
    bool const is_first = from == 0;
    if (is_first || huge_pages.load(std::memory_order_relaxed))
        os::advise_huge(w.address_of(from), (to - from) * granule_bytes, !is_first);
}

bool reserve(window& w, std::size_t bytes) noexcept
{
    std::size_t const granules = bytes / granule_bytes;
    std::size_t const before =
        records_bytes(granules) + map_bytes(granules) + groups_bytes(granules) + guard_bytes;
    std::byte* const at = os::reserve(before + bytes + guard_bytes, granule_bytes);
    if (at == nullptr)
        return false;
    std::byte* const map = at + records_bytes(granules);
    if (!os::make_readable(map, map_bytes(granules))) {
        os::unmap(at, before + bytes + guard_bytes);
        return false;
    }
    w.slabs = reinterpret_cast<slab*>(at);
    w.map = reinterpret_cast<std::atomic<entry>*>(map);
    w.groups = reinterpret_cast<group*>(map + map_bytes(granules));
    w.base = reinterpret_cast<std::uintptr_t>(at + before);
    w.step = step_first;
    w.granules = granules;
    return true;
}

} // namespace

window* add_window(std::size_t at_least) noexcept
{
    std::size_t const used = windows_used.load(std::memory_order_relaxed);
    if (used == windows_max)
        return nullptr;
    window* const w = windows + used;
    // Under a limit a half is left to others: stacks, files, the next window.
    std::size_t const left = os::address_space_left();
    std::size_t const least = std::max(bytes_least, at_least * granule_bytes);
    for (std::size_t bytes = bytes_first; bytes >= least; bytes /= 2)
        if (bytes <= left / 2 && reserve(*w, bytes)) {
            windows_used.store(used + 1, std::memory_order_release);
            return w;
        }
    return nullptr;
}

bool move_frontier(window& w, std::size_t at_least) noexcept
{
    std::size_t const left = w.granules - w.frontier;
    if (at_least > left)
        return false;
    // A whole number of groups, whose bits are one word.
    std::size_t const least =
        std::min(left, align_up(w.frontier + at_least, granules_a_group) - w.frontier);
    for (std::size_t step = std::min(left, std::max(w.step, least));;
         step = std::max(step / 4 / granules_a_group * granules_a_group, least)) {
        std::size_t const to = w.frontier + step;
        // Those that were done stay done: they will be wanted.
        if (commit_elements(w.slabs, w.frontier, to) && commit_elements(w.map, w.frontier, to) &&
            commit_elements(w.groups, w.frontier / granules_a_group, to / granules_a_group) &&
            os::commit(w.address_of(w.frontier), step * granule_bytes)) {
            advise_pages(w, w.frontier, to);
            w.step = std::min(2 * w.step, step_max);
            w.frontier = to;
            return true;
        }
        if (step == least)
            return false;
    }
}

} // namespace mallard::engine
