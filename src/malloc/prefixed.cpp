// mallard_malloc and related functions (include/mallard/c/malloc.h), which are malloc under names
// with the prefix `mallard_`. `free` accepts blocks of `mallard_malloc`, and `mallard_free` accepts
// blocks of malloc.
#include "arguments.hpp"

#include <backend.hpp>

#include <mallard/c/malloc.h>
#include <mallard/detail/base/bits.hpp>

#include <cerrno>

#pragma GCC visibility push(default)
extern "C" {

void* mallard_malloc(std::size_t bytes)
{
    return malloc_family::allocate(bytes);
}

void* mallard_calloc(std::size_t count, std::size_t bytes)
{
    std::size_t all = 0;
    return mallard::product(count, bytes, all) ? malloc_family::allocate_zeroed(all) : nullptr;
}

void* mallard_realloc(void* block, std::size_t bytes)
{
    if (block == nullptr)
        return malloc_family::allocate(bytes);
    if (bytes != 0)
        return malloc_family::reallocate(block, bytes);
    malloc_family::deallocate(block);
    return nullptr;
}

void* mallard_aligned_alloc(std::size_t align, std::size_t bytes)
{
    if (mallard::is_power_of_two(align))
        return malloc_family::allocate_aligned(bytes, align);
    errno = EINVAL;
    return nullptr;
}

void mallard_free(void* block)
{
    malloc_family::deallocate(block);
}

std::size_t mallard_usable_size(const void* block)
{
    return block == nullptr ? 0 : malloc_family::usable_bytes(block, "mallard_usable_size");
}

} // extern "C"
#pragma GCC visibility pop
