// Replaces operator new and delete by ones that count: for one file of a program.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace mallard::testing {

/// Of the global heap, since the program began.
struct heap_counts {
    std::size_t taken = 0;
    std::size_t given = 0;
    std::size_t live() const { return taken - given; }
};
inline heap_counts heap;

inline void* counted(void* block)
{
    heap.taken += 1;
    return block != nullptr ? block : throw std::bad_alloc();
}

} // namespace mallard::testing

void* operator new(std::size_t bytes)
{
    return mallard::testing::counted(std::malloc(bytes + (bytes == 0)));
}
void* operator new(std::size_t bytes, std::align_val_t align)
{
    auto const unit = static_cast<std::size_t>(align);
    return mallard::testing::counted(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
}
void operator delete(void* block) noexcept
{
    mallard::testing::heap.given += block != nullptr;
    std::free(block);
}
void operator delete(void* block, std::size_t) noexcept
{
    operator delete(block);
}
void operator delete(void* block, std::align_val_t) noexcept
{
    operator delete(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept
{
    operator delete(block);
}
