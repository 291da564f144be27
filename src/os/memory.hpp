// Maps and unmaps address space and memory for the malloc engine. No function allocates from
// malloc, changes errno or stops the process. The result shows whether the system call failed.
#pragma once

#include <cstddef>

namespace mallard::os {

/// Reserves inaccessible address space, aligned to `align`, a power of two. Returns null if no such
/// range is free. A reservation uses no memory, but counts for RLIMIT_AS and mlockall.
std::byte* reserve(std::size_t bytes, std::size_t align) noexcept;

/// Makes reserved pages readable and writable. Their bytes are 0. If the system call fails, changes
/// nothing and returns false.
bool commit(std::byte* at, std::size_t bytes) noexcept;

enum class growth {
    made,
    refused, ///< the system has no memory
    blocked, ///< another mapping is there already
};
/// Maps zeroed memory at exactly this address. If the result is not `made`, nothing has changed.
growth map_at(std::byte* at, std::size_t bytes) noexcept;

/// Maps zeroed memory anywhere. Returns null if the system call fails.
std::byte* map(std::size_t bytes) noexcept;
/// Resizes a mapping, which may move. If the system call fails, returns null and leaves the mapping
/// unchanged.
std::byte* remap(std::byte* at, std::size_t bytes, std::size_t bytes_new) noexcept;
/// Moves pages to a range that is mapped already. The old range stays mapped, and its bytes are 0
/// afterwards. Each move may add two mappings to the process. If the system cannot move pages
/// (Linux before 5.7), changes nothing and returns false.
bool move_pages(std::byte* from, std::byte* to, std::size_t bytes) noexcept;
/// Unmaps pages. Returns false if the system call fails. The pages are then still mapped.
bool unmap(std::byte* at, std::size_t bytes) noexcept;

/// Returns the pages to the system. The address space stays mapped, and its bytes are 0 afterwards.
/// Parts of pages at the ends of the range are set to 0 instead. If the system call fails, as it
/// does for locked memory, leaves the contents unchanged and returns false.
bool purge(std::byte* at, std::size_t bytes) noexcept;

/// Advises the system to use huge pages in this range, or, if `wanted` is false, to use none.
void advise_huge(std::byte* at, std::size_t bytes, bool wanted) noexcept;

} // namespace mallard::os
