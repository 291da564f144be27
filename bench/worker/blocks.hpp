// The allocation functions that a worker calls. Calls go through the PLT as in any program. The asm
// statements around an allocation and its free keep a compiler from removing both calls.
#pragma once

#include <bench/barrier.hpp>

#include <cstdlib>
#include <new>

namespace mallard::bench {

/// Returns `block`. Aborts if it is null, as most programs do.
inline void* insist(void* block)
{
    if (block == nullptr)
        std::abort();
    return keep(block);
}

struct by_malloc {
    static void* take(std::size_t bytes) { return keep(std::malloc(bytes)); }
    static void give(void* block, std::size_t) { std::free(keep(block)); }
};
struct by_calloc {
    static void* take(std::size_t bytes) { return keep(std::calloc(1, bytes)); }
    static void give(void* block, std::size_t) { std::free(keep(block)); }
};
struct by_new {
    static void* take(std::size_t bytes) { return keep(::operator new(bytes)); }
    static void give(void* block, std::size_t) { ::operator delete(keep(block)); }
};
struct by_sized_delete : by_new {
    static void give(void* block, std::size_t bytes) { ::operator delete(keep(block), bytes); }
};
struct by_aligned_new {
    static constexpr std::align_val_t align{64};
    static void* take(std::size_t bytes) { return keep(::operator new(bytes, align)); }
    static void give(void* block, std::size_t bytes)
    {
        ::operator delete(keep(block), bytes, align);
    }
};

/// Writes a byte of each page, so that the block is resident.
inline void touch_pages(void* block, std::size_t bytes, std::size_t from = 0)
{
    for (std::size_t at = from; at < bytes; at += 4096)
        touch_byte(static_cast<char*>(block) + at, at);
}

} // namespace mallard::bench
