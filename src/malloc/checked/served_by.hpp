// Who serves the family of malloc in libmallard-checked.so: the same requests as those of
// src/heap/requests.hpp, of the engine behind `checked`.
#pragma once

#include <mallard/detail/base/bits.hpp>

#include <cstdint>

namespace mallard {

/// What `new` gave is not for `free`, nor the reverse: each family has books of its own.
enum class family { of_malloc, of_new };

/// Blocks are exactly as large as they were asked for. What is wrong stops the process.
template <family By>
struct checked_requests {
    static constexpr std::size_t align_min = 16;

    static void* allocate(std::size_t bytes) noexcept { return allocate_aligned(bytes, align_min); }
    static void* allocate_aligned(std::size_t bytes, std::size_t align) noexcept;
    static void* allocate_zeroed(std::size_t bytes) noexcept;
    /// Always elsewhere.
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
