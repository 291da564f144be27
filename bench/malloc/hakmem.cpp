// The cases in the report of October 2025 (file 004) of hakmem, one of the projects from which
// Mallard grew. They have hakmem's names. The report does not specify how much of each block was
// written, so larger blocks have a case for each possible meaning.
//
// The report counts a malloc and a free as two operations. In all suites, an operation is a
// malloc and its free.
#include <bench/malloc/parts.hpp>

namespace mallard::bench {
namespace {

enum : std::size_t { a_byte, pages, all_bytes }; // the written part of each block

load burst(const char* name, const char* what, task how)
{
    how.job = "burst";
    return {.asks =
                std::string(what) + ", allocated, then freed in order, again and again. ns a pair",
            .figures = {{std::string("hakmem/") + name}},
            .what = how};
}

} // namespace

std::vector<load> malloc_hakmem()
{
    std::vector<load> all{
        burst("json/64KiB", "100 blocks of 64 KiB, a byte of each written",
              {.bytes = 64 << 10, .count = 100, .variant = a_byte}),
        burst("json/64KiB/pages", "100 blocks of 64 KiB, a byte of each page written",
              {.bytes = 64 << 10, .count = 100, .variant = pages}),
        burst("mir/256KiB", "100 blocks of 256 KiB, a byte of each written",
              {.bytes = 256 << 10, .count = 100, .variant = a_byte}),
        burst("mir/256KiB/pages", "100 blocks of 256 KiB, a byte of each page written",
              {.bytes = 256 << 10, .count = 100, .variant = pages}),
        burst("mf2/2-32KiB", "1,000 blocks each of 2, 4, 8, 16 and 32 KiB, a byte of each written",
              {.bytes = 2 << 10, .most = 32 << 10, .count = 1000, .variant = a_byte}),
        burst("strings/8-64B", "100 strings each of 8, 16, 24, ... 64 bytes, written in full",
              {.bytes = 8, .most = 64, .count = 100, .variant = all_bytes}),
    };
    all.push_back({.asks = "4 threads each allocate 100 blocks of 16 bytes and free them, again "
                           "and again. ns a pair: wall time / pairs of all threads, and CPU time",
                   .figures = {{"hakmem/tiny/16B/T4", "ns_per_op", "", 4},
                               {"hakmem/tiny/16B/T4", "cpu_ns_per_op", "", 4}},
                   .what = {.job = "threads/hundreds", .bytes = 16, .threads = 4}});
    return all;
}

} // namespace mallard::bench
