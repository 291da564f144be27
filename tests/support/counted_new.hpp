// Replaces operator new and delete by functions that count their calls. Include this header in one
// file of a program. All forms are replaced, because AddressSanitizer does not define one form by
// another.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

// g++ warns of `free` for memory of operator new when it inlines the functions below.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace mallard::testing {

/// Counters of the global heap since the start of the program.
struct heap_counts {
    std::size_t taken = 0;
    std::size_t given = 0;
    std::size_t live() const { return taken - given; }
};
inline heap_counts heap;

inline void* counted_take(std::size_t bytes, std::size_t align = 1) noexcept
{
    void* const block = align <= alignof(std::max_align_t)
                            ? std::malloc(bytes + (bytes == 0))
                            : std::aligned_alloc(align, (bytes + align - 1) / align * align);
    heap.taken += block != nullptr;
    return block;
}

inline void counted_give(void* block) noexcept
{
    heap.given += block != nullptr;
    std::free(block);
}

inline void* or_throw(void* block)
{
    return block != nullptr ? block : throw std::bad_alloc();
}

} // namespace mallard::testing

void* operator new(std::size_t bytes)
{
    return mallard::testing::or_throw(mallard::testing::counted_take(bytes));
}
void* operator new(std::size_t bytes, std::align_val_t align)
{
    using namespace mallard::testing;
    return or_throw(counted_take(bytes, static_cast<std::size_t>(align)));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    return mallard::testing::counted_take(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept
{
    return mallard::testing::counted_take(bytes, static_cast<std::size_t>(align));
}
void operator delete(void* block) noexcept
{
    mallard::testing::counted_give(block);
}
void operator delete(void* block, std::size_t) noexcept
{
    mallard::testing::counted_give(block);
}
void operator delete(void* block, std::align_val_t) noexcept
{
    mallard::testing::counted_give(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept
{
    mallard::testing::counted_give(block);
}
