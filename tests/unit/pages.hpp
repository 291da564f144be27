// Helpers for tests of `pages`: mappings and limits of the process, and child processes.
#pragma once

#include "../support/asan.hpp"
#include "../support/tsan.hpp"

#include <mallard/pages.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace mallard::testing {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t gib = std::size_t{1} << 30;

inline std::byte* begin(chunk c)
{
    return static_cast<std::byte*>(c.data);
}

inline std::byte* end(chunk c)
{
    return begin(c) + c.bytes;
}

inline bool is_aligned(chunk c, std::size_t align)
{
    return reinterpret_cast<std::uintptr_t>(c.data) % align == 0;
}

/// Reads a file of /proc without allocating, so that reading changes no mapping.
struct proc_file {
    explicit proc_file(const char* path)
    {
        int const file = ::open(path, O_RDONLY);
        ssize_t const length = file < 0 ? 0 : ::read(file, text, sizeof text - 1);
        text[length < 0 ? 0 : length] = '\0';
        ::close(file);
    }
    char text[256];
};

/// Returns the number of pages of address space that this process has mapped.
inline std::size_t mapped_pages()
{
    return std::strtoull(proc_file("/proc/self/statm").text, nullptr, 10);
}

/// Returns the bytes that RLIMIT_DATA counts in this process: those of writable private memory.
inline std::size_t data_bytes()
{
    proc_file const status("/proc/self/statm");
    const char* words = status.text; // size resident shared text lib data dt, in pages
    for (int word = 0; word < 5; ++word)
        words = std::strchr(words, ' ') + 1;
    return std::strtoull(words, nullptr, 10) * page_bytes;
}

/// Returns whether the page is mapped. Guard pages and reserved ranges count as mapped.
inline bool is_mapped(const void* page)
{
    unsigned char resident = 0;
    return ::mincore(const_cast<void*>(page), 1, &resident) == 0;
}

inline std::size_t resident_pages(std::byte* from, std::size_t bytes)
{
    std::vector<unsigned char> resident(bytes / page_bytes);
    EXPECT_EQ(::mincore(from, bytes, resident.data()), 0);
    std::size_t count = 0;
    for (unsigned char const page : resident)
        count += page & 1U;
    return count;
}

inline std::size_t free_huge_pages()
{
    char const path[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    return std::strtoull(proc_file(path).text, nullptr, 10);
}
inline bool has_huge_pages()
{
    return free_huge_pages() > 0;
}

inline void limit(int resource, rlim_t bytes)
{
    rlimit now{};
    ::getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &now);
    now.rlim_cur = bytes;
    ::setrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &now);
}

/// Returns whether a test may limit memory. Under ThreadSanitizer and AddressSanitizer it may not,
/// because they map memory themselves and stop the process if the system provides none. Since clang
/// 17, AddressSanitizer maps memory in each mmap of the program.
inline bool may_refuse_memory()
{
    return !has_tsan() && !has_asan();
}

inline constexpr char refuses_sanitizers[] =
    "the test refuses memory, which a sanitizer needs itself";

/// Ends the child of a death test, with exit status 0 if `holds`.
[[noreturn]] inline void report(bool holds)
{
    std::_Exit(holds ? 0 : 1);
}

inline bool says(std::string_view refusal, std::string_view words)
{
    return refusal.find(words) != refusal.npos;
}

// RLIMIT_DATA counts writable memory. So the system still reserves addresses, but commits no
// memory.
template <pages_options O>
void take_without_memory()
{
    pages<O> source;
    limit(RLIMIT_DATA, page_bytes);
    std::size_t const before = mapped_pages();
    chunk const refused = source.try_take({mib, huge_page_bytes});
    bool const clean = refused.data == nullptr && mapped_pages() == before &&
                       source.last_error() == ENOMEM && says(source.last_failure(), "ulimit -d");
    limit(RLIMIT_DATA, RLIM_INFINITY);
    report(clean && source.try_take({mib, huge_page_bytes}).data != nullptr);
}

} // namespace mallard::testing
