// The calls that a program makes, through the PLT as a program makes them. The
// asm statements around a pair keep a compiler from leaving both out.
#pragma once

#include <bench/barrier.hpp>

#include <cstdlib>
#include <new>

namespace mallard::bench {

/// A program would rather not go on.
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

/// Writes a byte of each page: the block is there.
inline void touch_pages(void* block, std::size_t bytes, std::size_t from = 0)
{
    for (std::size_t at = from; at < bytes; at += 4096)
        touch_byte(static_cast<char*>(block) + at, at);
}

} // namespace mallard::bench
