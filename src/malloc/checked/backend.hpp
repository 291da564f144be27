// The backend of malloc (the functions that malloc.cpp and new.cpp call) in libmallard-checked.so.
// The backend has the functions of src/heap/requests.hpp, but calls the adaptor `checked` before
// the engine.
#pragma once

#include <mallard/detail/base/bits.hpp>

#include <cstdint>

namespace mallard {

/// The two families of functions. Each family has its own records of blocks, because `free` must
/// not free a block of `new`, and `delete` must not free a block of malloc.
enum class family { of_malloc, of_new };

/// Allocates and frees with checks. The usable size of a block is exactly the requested size. Any
/// misuse, such as a double free, stops the process.
template <family By>
struct checked_requests {
    static constexpr std::size_t align_min = 16;

    static void* allocate(std::size_t bytes) noexcept { return allocate_aligned(bytes, align_min); }
    static void* allocate_aligned(std::size_t bytes, std::size_t align) noexcept;
    static void* allocate_zeroed(std::size_t bytes) noexcept;
    /// Always moves the block, so that uses of old pointers are detected.
    static void* reallocate(void* block, std::size_t bytes) noexcept;
    static std::size_t usable_bytes(const void* block, const char* call) noexcept;

    static void deallocate(void* block) noexcept;
    static void deallocate_sized(void* block, std::size_t bytes,
                                 std::size_t align = align_min) noexcept;
};

} // namespace mallard

inline constexpr bool malloc_is_checked = true;
using malloc_family = mallard::checked_requests<mallard::family::of_malloc>;
using new_family = mallard::checked_requests<mallard::family::of_new>;
