// A table of the functions that allocate, with one signature. Needs no C++ runtime.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <malloc.h>

namespace mallard::testing {

/// Returns its argument, and hides the origin of the value from the compiler. Otherwise the
/// compiler would warn of deliberate misuse, or remove allocations.
template <class T>
T hidden(T value)
{
    asm volatile("" : "+r"(value) : : "memory");
    return value;
}

struct member {
    const char* name;
    std::size_t align;
    void* (*allocate)(std::size_t bytes); // sets errno if the result is null
};

inline void* allocate_by_posix_memalign(std::size_t bytes)
{
    void* block = nullptr;
    int const before = errno;
    int const result = ::posix_memalign(&block, 64, hidden(bytes));
    errno = result == 0 ? before : result;
    return result == 0 ? block : nullptr;
}

inline constexpr member family[] = {
    {"malloc", 16, [](std::size_t n) { return std::malloc(hidden(n)); }},
    {"calloc of one", 16, [](std::size_t n) { return std::calloc(1, hidden(n)); }},
    {"calloc of bytes", 16, [](std::size_t n) { return std::calloc(hidden(n), 1); }},
    {"realloc of null", 16, [](std::size_t n) { return std::realloc(hidden<void*>(nullptr), n); }},
    {"reallocarray of null", 16,
     [](std::size_t n) { return ::reallocarray(hidden<void*>(nullptr), n, 1); }},
    {"aligned_alloc", 32, [](std::size_t n) { return ::aligned_alloc(32, hidden(n)); }},
    {"posix_memalign", 64, allocate_by_posix_memalign},
    {"memalign", 512, [](std::size_t n) { return ::memalign(512, hidden(n)); }},
    {"memalign far", 1 << 21, [](std::size_t n) { return ::memalign(1 << 21, hidden(n)); }},
    {"valloc", 4096, [](std::size_t n) { return ::valloc(hidden(n)); }},
    {"pvalloc", 4096, [](std::size_t n) { return ::pvalloc(hidden(n)); }},
};

inline bool is_aligned(const void* block, std::size_t align)
{
    return reinterpret_cast<std::uintptr_t>(block) % align == 0;
}

/// Returns the index of the next byte to write or check. Up to 4 KiB this is every byte, then one
/// byte in
/// 512. From 1 MiB on it is one in 16 KiB, because each page costs a page fault.
inline std::size_t next_looked_at(std::size_t i)
{
    return i + (i < 4096 ? 1 : i < 1 << 20 ? 512 : 1 << 14);
}

/// Writes those bytes of a block that `holds` checks later. The last byte of the block is among
/// them.
inline void fill(void* block, std::size_t bytes, unsigned seed)
{
    auto* const p = static_cast<unsigned char*>(block);
    for (std::size_t i = 0; i < bytes; i = next_looked_at(i))
        p[i] = static_cast<unsigned char>(seed + i * 7 + i / 512);
    if (bytes > 4096)
        p[bytes - 1] = static_cast<unsigned char>(seed);
}

inline bool holds(const void* block, std::size_t bytes, unsigned seed)
{
    const auto* const p = static_cast<const unsigned char*>(block);
    bool const has_end = bytes > 4096;
    for (std::size_t i = 0; i < bytes - has_end; i = next_looked_at(i))
        if (p[i] != static_cast<unsigned char>(seed + i * 7 + i / 512))
            return false;
    return !has_end || p[bytes - 1] == static_cast<unsigned char>(seed);
}

/// Returns whether all bytes that `fill` would write are 0.
inline bool is_clear(const void* block, std::size_t bytes)
{
    const auto* const p = static_cast<const unsigned char*>(block);
    for (std::size_t i = 0; i < bytes; i = next_looked_at(i))
        if (p[i] != 0)
            return false;
    return bytes == 0 || p[bytes - 1] == 0;
}

} // namespace mallard::testing
