// The page source on Linux. It allocates a chunk in two steps, and `give` undoes both:
//   reserve   map inaccessible address space, which uses no memory
//   commit    make that address space readable and writable; this step may fail
// Guard pages, alignment padding and reserved ranges are address space that is never committed.
#include "processor.hpp"

#include <mallard/pages.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mallard::os {
namespace {

// The largest request. The sum of a few sizes up to this limit cannot overflow, and no machine has
// this amount of memory.
constexpr std::size_t request_bytes_max = bytes_max / 8;
constexpr std::size_t bits_per_word = 64;

// MADV_POPULATE_WRITE (Linux 5.14) and MADV_DONTNEED_LOCKED (Linux 5.18). Older headers, and the
// headers of musl, lack these names.
constexpr int madv_populate_write = 23;
constexpr int madv_dontneed_locked = 24;

/// Returns the number at the beginning of a file in /proc or /sys, or 0 if there is no number.
std::size_t read_number(const char* path) noexcept
{
    int const file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    char text[24] = {};
    ssize_t const length = ::read(file, text, sizeof text - 1);
    ::close(file);
    return length > 0 ? std::strtoull(text, nullptr, 10) : 0;
}

const char* why_no_place(std::size_t bytes) noexcept
{
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    std::size_t const mapped = read_number("/proc/self/statm") * kernel_page_bytes();
    if (saturating_add(mapped, bytes) > limit.rlim_cur)
        return "the limit of this process on address space is reached: see `ulimit -v`";
    return "no address space is left for this size, or the process has too many mappings: "
           "see /proc/sys/vm/max_map_count";
}

const char* why_no_huge_pages(int error) noexcept
{
    if (error != ENOMEM)
        return "this kernel has no huge pages of 2 MiB: use huge::madvise";
    if (read_number("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages") == 0)
        return "no huge pages are configured: write their number to "
               "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    return "too few huge pages are free: raise "
           "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
}

const char* why_no_node(int error) noexcept
{
    if (error == ENOSYS)
        return "this kernel has no NUMA nodes: leave out .numa";
    if (error == EPERM)
        return "the sandbox of this process forbids mbind: a container needs CAP_SYS_NICE";
    return "there is no such NUMA node, or this process may not use it: see "
           "/sys/devices/system/node/has_memory and Mems_allowed_list in /proc/self/status";
}

const char* why_not_locked(int error) noexcept
{
    if (error == EPERM)
        return "this process may lock no memory: see `ulimit -l`";
    if (error == ENOMEM)
        return "the limit of this process on locked memory is reached, see `ulimit -l`; or it has "
               "too many mappings, see /proc/sys/vm/max_map_count";
    return "this kernel cannot lock pages as they are touched: Linux 4.4 can";
}

constexpr const char* why_no_memory =
    "the system commits no more memory to this process: see `ulimit -d` and "
    "/proc/sys/vm/overcommit_memory";

constexpr const char* why_too_many_mappings =
    "the process has too many mappings: see /proc/sys/vm/max_map_count";

/// Maps inaccessible address space. The system does not charge PROT_NONE mappings against its
/// commit limit. The flag MAP_NORESERVE is omitted, because with it the later commit would not be
/// charged either. The commit could then not fail, and the system would kill the process when the
/// memory is used.
void* map_untouchable(void* where, std::size_t bytes, int flags) noexcept
{
    return ::mmap(where, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

bool unmap_between(std::byte* from, std::byte* to) noexcept
{
    return from == to || ::munmap(from, static_cast<std::size_t>(to - from)) == 0;
}

/// Returns the pages to the system, but not the address space. Works for locked pages since Linux
/// 5.18.
bool discard(std::byte* data, std::size_t bytes) noexcept
{
    return ::madvise(data, bytes, MADV_DONTNEED) == 0 ||
           ::madvise(data, bytes, madv_dontneed_locked) == 0;
}

/// Makes memory inaccessible again and returns its pages to the system. A new mapping replaces the
/// old mapping in one step, whether the old mapping has huge pages or not. `mprotect` is not used,
/// because the system would continue to charge the memory against its commit limit.
bool decommit(std::byte* data, std::size_t bytes) noexcept
{
    return map_untouchable(data, bytes, MAP_FIXED) != MAP_FAILED ||
           discard(data, bytes); // `mmap` fails if the process has too many mappings
}

/// Maps huge pages at another address and moves them over the reserved range, since `mprotect`
/// cannot create huge pages. A direct `mmap` with MAP_FIXED would be unsafe. If such a call failed,
/// the range would be unmapped already, and another thread could get a mapping in that range.
bool map_huge(std::byte* data, std::size_t bytes) noexcept
{
    constexpr int of_2_mib = std::countr_zero(huge_page_bytes) << MAP_HUGE_SHIFT;
    void* const elsewhere = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | of_2_mib, -1, 0);
    if (elsewhere == MAP_FAILED)
        return false;
    if (::mremap(elsewhere, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, data) != MAP_FAILED)
        return true;
    int const error = errno;
    ::munmap(elsewhere, bytes);
    errno = error;
    return false;
}

/// Sets the NUMA node of pages. Calls mbind directly, so that libnuma is not needed.
bool prefer_node(std::byte* data, std::size_t bytes, numa wanted) noexcept
{
    constexpr int nodes_max = 1024; // largest number of nodes of any kernel for x86-64
    unsigned long mask[nodes_max / bits_per_word] = {};
    if (wanted.node < 0 || wanted.node >= nodes_max) {
        errno = EINVAL;
        return false;
    }
    auto const node = static_cast<std::size_t>(wanted.node);
    mask[node / bits_per_word] = 1UL << node % bits_per_word;
    // The kernel reads one bit less than the count that is passed, so pass one more.
    return ::syscall(SYS_mbind, data, bytes, wanted.strict ? MPOL_BIND : MPOL_PREFERRED, mask,
                     nodes_max + 1, 0) == 0;
}

/// Touches all pages now. MAP_POPULATE is not used, because it would not report a failure.
bool populate(std::byte* data, std::size_t bytes) noexcept
{
    if (::madvise(data, bytes, madv_populate_write) == 0)
        return true;
    if (errno != EINVAL)
        return false;
    // Linux before 5.14 does not support MADV_POPULATE_WRITE, so write to each page.
    for (std::size_t offset = 0; offset < bytes; offset += kernel_page_bytes())
        *const_cast<volatile std::byte*>(data + offset) = std::byte{};
    return true;
}

/// Returns the first unit (a page of a reserved range) in `from..to` whose bit equals `bit`, or
/// `to` if there is no such unit.
std::size_t find_bit(const std::uint64_t* bits, std::size_t from, std::size_t to, bool bit) noexcept
{
    while (from < to) {
        std::uint64_t const word = bits[from / bits_per_word] ^ (bit ? 0 : ~std::uint64_t{0});
        std::uint64_t const rest = word >> from % bits_per_word;
        if (rest != 0)
            return std::min(to, from + static_cast<std::size_t>(std::countr_zero(rest)));
        from += bits_per_word - from % bits_per_word;
    }
    return to;
}

/// Inverts the bits of the units `from..to`.
void flip_bits(std::uint64_t* bits, std::size_t from, std::size_t to) noexcept
{
    while (from < to) {
        std::size_t const shift = from % bits_per_word;
        std::size_t const count = std::min(to - from, bits_per_word - shift);
        bits[from / bits_per_word] ^= ~std::uint64_t{0} >> (bits_per_word - count) << shift;
        from += count;
    }
}

} // namespace

page_source::page_source(page_source&& other) noexcept
    : options_(other.options_), range_(std::exchange(other.range_, {})),
      error_(std::exchange(other.error_, 0)), failure_(std::exchange(other.failure_, ""))
{
}

page_source& page_source::operator=(page_source&& other) noexcept
{
    page_source taken(std::move(other)); // moved out first, since `other` may be this object
    std::swap(options_, taken.options_);
    std::swap(range_, taken.range_);
    std::swap(error_, taken.error_);
    std::swap(failure_, taken.failure_);
    return *this;
}

page_source::~page_source()
{
    if (range_.base != nullptr)
        unmap(range_.base, range_.bytes);
}

chunk page_source::try_take(layout l) noexcept
{
    std::size_t const align = std::max(l.align, unit_bytes());
    if (l.bytes > request_bytes_max || align > request_bytes_max) {
        refuse(ENOMEM, "the request is larger than any address space");
        return {};
    }
    std::size_t const bytes = align_up(std::max<std::size_t>(l.bytes, 1), unit_bytes());
    std::byte* const data = options_.reserve_bytes == 0 ? map(bytes, align) : claim(bytes, align);
    if (data == nullptr)
        return {};
    chunk const taken{data, bytes, align};
    if (commit(data, bytes))
        return taken;
    give(taken);
    return {};
}

void page_source::give(chunk c) noexcept
{
    auto const data = static_cast<std::byte*>(c.data);
    if (options_.reserve_bytes == 0) {
        unmap(data, c.bytes);
    } else if (decommit(data, c.bytes)) { // on failure, the units stay in use, as they are not
                                          // zeroed
        std::size_t const first = static_cast<std::size_t>(data - range_.base) / unit_bytes();
        flip_bits(range_.bits, first, first + claimed_units(c.bytes));
        range_.low = std::min(range_.low, first);
    }
}

bool page_source::quarantine(chunk c) noexcept
{
    return map_untouchable(c.data, c.bytes, MAP_FIXED) != MAP_FAILED ||
           refuse(errno, why_too_many_mappings);
}

std::size_t page_source::commit_part(std::size_t offset, std::size_t bytes) noexcept
{
    std::size_t const from = offset / unit_bytes() * unit_bytes();
    std::size_t const to = align_up(offset + bytes, unit_bytes());
    if (to > range_.units * unit_bytes()) {
        refuse(ENOMEM, "the reserved range is used up");
        return 0;
    }
    return commit(range_.base + from, to - from) ? to : 0;
}

std::size_t page_source::unit_bytes() const noexcept
{
    return options_.huge == huge::none ? kernel_page_bytes() : huge_page_bytes;
}

std::size_t page_source::guard_bytes() const noexcept
{
    return options_.guard ? kernel_page_bytes() : 0;
}

/// Maps address space for one chunk and its guard pages. Maps more than needed, so that the range
/// contains an aligned address, and unmaps both ends.
std::byte* page_source::map(std::size_t bytes, std::size_t align) noexcept
{
    std::size_t const guard = guard_bytes();
    std::size_t const all = bytes + 2 * guard + (align - kernel_page_bytes());
    void* const mapped = map_untouchable(nullptr, all, 0);
    if (mapped == MAP_FAILED) {
        int const error = errno;
        refuse(error, why_no_place(all));
        return nullptr;
    }
    auto const begin = static_cast<std::byte*>(mapped);
    std::byte* const end = begin + all;
    std::byte* const data = align_up(begin + guard, align);
    std::byte* const kept_end = data + bytes + guard;

    // Never unmap an end twice, because after the first attempt, another thread may get a new
    // mapping there.
    bool const end_cut = unmap_between(kept_end, end);
    if (end_cut && unmap_between(begin, data - guard))
        return data;
    refuse(errno, why_too_many_mappings);
    unmap_between(begin, end_cut ? kept_end : end);
    return nullptr;
}

/// Unmaps a chunk and its guard pages. If the process has too many mappings, the system cannot
/// split a mapping in two, and the unmap fails. The pages are then returned to the system, but the
/// address space is lost.
void page_source::unmap(std::byte* data, std::size_t bytes) noexcept
{
    if (!unmap_between(data - guard_bytes(), data + bytes + guard_bytes()))
        discard(data, bytes);
}

/// Reserves the range. Its address is a multiple of the first request's alignment, so that the
/// range has room for the largest number of chunks with that alignment.
bool page_source::reserve(std::size_t align) noexcept
{
    if (options_.reserve_bytes > request_bytes_max)
        return refuse(ENOMEM, "reserve_bytes is larger than any address space");
    std::size_t const units = align_up(options_.reserve_bytes, unit_bytes()) / unit_bytes();
    std::size_t const cut_bytes = (units + 1) * unit_bytes();
    std::size_t const words = units / bits_per_word + 1; // room for `units + 1` bits
    std::size_t const bits_bytes = align_up(words * sizeof(std::uint64_t), kernel_page_bytes());
    std::size_t const bytes = cut_bytes + bits_bytes;

    std::byte* const base = map(bytes, align);
    if (base == nullptr)
        return false;
    if (::mprotect(base + cut_bytes, bits_bytes, PROT_READ | PROT_WRITE) != 0) {
        refuse(errno, why_no_memory);
        unmap(base, bytes);
        return false;
    }
    range_ = {.base = base,
              .bits = reinterpret_cast<std::uint64_t*>(base + cut_bytes),
              .units = units + claimed_units(0), // includes a guard for the last chunk
              .low = 0,
              .bytes = bytes};
    return true;
}

/// Returns the number of units for a chunk in the range and the guard page after the chunk. The
/// unit before a chunk is always inaccessible, because it is another chunk's guard page, a free
/// unit, or the guard page of the range.
std::size_t page_source::claimed_units(std::size_t bytes) const noexcept
{
    return bytes / unit_bytes() + (options_.guard ? 1 : 0);
}

/// Allocates the lowest free units of the range that are large enough (first fit).
std::byte* page_source::claim(std::size_t bytes, std::size_t align) noexcept
{
    if (range_.base == nullptr && !reserve(align))
        return nullptr;
    std::size_t const units = range_.units;
    std::size_t const count = claimed_units(bytes);
    range_.low = find_bit(range_.bits, range_.low, units, false);
    for (std::size_t free = range_.low;;) {
        std::byte* const data = align_up(range_.base + free * unit_bytes(), align);
        std::size_t const first = static_cast<std::size_t>(data - range_.base) / unit_bytes();
        if (first > units || count > units - first)
            break;
        std::size_t const taken = find_bit(range_.bits, first, first + count, true);
        if (taken == first + count) {
            flip_bits(range_.bits, first, first + count);
            return data;
        }
        free = find_bit(range_.bits, taken, units, false);
    }
    refuse(ENOMEM, "the reserved range has no room left for this size: raise reserve_bytes");
    return nullptr;
}

bool page_source::commit(std::byte* data, std::size_t bytes) noexcept
{
    bool const set_aside = options_.huge == huge::hugetlb;
    if (set_aside ? !map_huge(data, bytes) : ::mprotect(data, bytes, PROT_READ | PROT_WRITE) != 0) {
        int const error = errno;
        return refuse(error, set_aside ? why_no_huge_pages(error) : why_no_memory);
    }
    // madvise is only advice. If madvise fails, the chunk has ordinary pages, and last_failure()
    // reports the failure.
    if (options_.huge == huge::madvise && ::madvise(data, bytes, MADV_HUGEPAGE) != 0)
        refuse(errno, "this kernel has no transparent huge pages: ordinary ones are used");
    if (!place_on_node(data, bytes))
        return false;
    // Lock each page at its first touch (MLOCK_ONFAULT). Only `populate` touches all pages now.
    if (options_.locked && ::mlock2(data, bytes, MLOCK_ONFAULT) != 0) {
        int const error = errno;
        return refuse(error, why_not_locked(error));
    }
    // The system reserves huge pages for all NUMA nodes together. Touching a page raises SIGBUS if
    // the page's node has no huge page left. So touch all pages now if they are bound to a node.
    bool const at_once = options_.populate || (set_aside && options_.numa.strict);
    if (at_once && !populate(data, bytes))
        return refuse(errno,
                      options_.populate
                          ? "too little memory is left to populate all pages: leave out .populate"
                          : "too few huge pages are free on this node: see "
                            "/sys/devices/system/node/node*/hugepages");
    return true;
}

/// Sets the NUMA node of a chunk. Must be called before a page is touched for the first time,
/// because the first touch determines the node.
bool page_source::place_on_node(std::byte* data, std::size_t bytes) noexcept
{
    if (options_.numa == numa{} || prefer_node(data, bytes, options_.numa))
        return true;
    refuse(errno, why_no_node(errno));
    return !options_.numa.strict;
}

bool page_source::refuse(int error, const char* why) noexcept
{
    error_ = error;
    failure_ = why;
    return false;
}

} // namespace mallard::os
