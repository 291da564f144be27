// glibc's functions that report or release memory, such as malloc_trim, mallinfo and malloc_info.
// Other C libraries, such as musl, do not have these functions, so programs do not call them there.
#include "report.hpp"

#include "../heap/slice_heap.hpp"
#include "../heap/thread_cache.hpp"
#include "../heap/threads.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>

#include <malloc.h>

namespace engine = mallard::engine;

namespace {

/// Returns the number of bytes from the system that are not in live blocks.
std::size_t bytes_free(engine::heap_statistics const& s) noexcept
{
    // While other threads allocate, the two numbers are from slightly different moments, so their
    // difference may be negative.
    return s.bytes_taken > s.bytes_live ? s.bytes_taken - s.bytes_live : 0;
}

int clamped(std::size_t value) noexcept
{
    return value > INT_MAX ? INT_MAX : static_cast<int>(value);
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

/// Returns idle memory except `keep` bytes to the system. As in glibc, the result is 1 if memory
/// was returned, and 0 otherwise.
int malloc_trim(std::size_t keep) noexcept
{
    engine::flush_all_threads();
    return engine::the_slice_heap.trim(keep) ? 1 : 0;
}

struct mallinfo2 mallinfo2() noexcept
{
    engine::heap_statistics s;
    engine::collect_statistics(s);
    struct mallinfo2 info = {};
    // As in glibc, each byte counts once: arena + hblkhd == bytes_taken, and
    // arena == uordblks + fordblks.
    info.hblks = s.large_blocks;
    info.hblkhd = s.large_bytes;
    info.uordblks = s.bytes_live - s.large_bytes;
    info.fordblks = bytes_free(s);
    info.arena = info.uordblks + info.fordblks;
    info.keepcost = s.bytes_idle;
    return info;
}

struct mallinfo mallinfo() noexcept
{
    struct mallinfo2 const wide = mallinfo2();
    struct mallinfo info = {};
    info.arena = clamped(wide.arena);
    info.hblks = clamped(wide.hblks);
    info.hblkhd = clamped(wide.hblkhd);
    info.uordblks = clamped(wide.uordblks);
    info.fordblks = clamped(wide.fordblks);
    info.keepcost = clamped(wide.keepcost);
    return info;
}

/// Ignores the options of glibc, but returns 1 (success) for them. Returns 0 for other options.
int mallopt(int option, int) noexcept
{
    return option == M_ARENA_TEST || option == M_ARENA_MAX || (option <= M_MXFAST && option > -9);
}

void malloc_stats() noexcept
{
    mallard::print_malloc_report(false);
}

int malloc_info(int options, FILE* to) noexcept
{
    if (options != 0) {
        errno = EINVAL;
        return -1;
    }
    engine::heap_statistics s;
    engine::collect_statistics(s);
    bool good = std::fprintf(to, "<malloc version=\"mallard-1\">\n") > 0;
    for (engine::class_statistics const& c : s.classes)
        if (c.slabs != 0)
            good = std::fprintf(
                       to, "<class bytes=\"%zu\" live=\"%zu\" cached=\"%zu\" slabs=\"%zu\"/>\n",
                       c.bytes, c.live, c.cached, c.slabs) > 0 &&
                   good;
    good = std::fprintf(to,
                        "<total type=\"live\" count=\"%zu\" size=\"%zu\"/>\n"
                        "<total type=\"large\" count=\"%zu\" size=\"%zu\"/>\n"
                        "<total type=\"free\" size=\"%zu\"/>\n"
                        "<system type=\"current\" size=\"%zu\"/>\n"
                        "<system type=\"max\" size=\"%zu\"/>\n</malloc>\n",
                        s.blocks_live, s.bytes_live, s.large_blocks, s.large_bytes, bytes_free(s),
                        s.bytes_taken, s.bytes_taken_max) > 0 &&
           good;
    return good ? 0 : -1;
}

} // extern "C"
#pragma GCC visibility pop
