// Address space and memory of the system for the malloc engine. No function allocates, changes
// errno or stops the process. The result says whether the system refused.
#pragma once

#include <cstddef>

namespace mallard::os {

/// Reserves inaccessible address space, aligned to `align`, a power of two. Null: there is no such
/// range. A reservation costs no memory, but RLIMIT_AS and mlockall count it.
std::byte* reserve(std::size_t bytes, std::size_t align) noexcept;

/// Makes reserved pages readable and writable; they read as zero. False: the system refused, and
/// nothing has changed.
bool commit(std::byte* at, std::size_t bytes) noexcept;

enum class growth {
    made,
    refused, ///< the system has no memory
    blocked, ///< another mapping is there already
};
/// Maps zeroed memory at exactly this address. If the result is not `made`, nothing has changed.
growth map_at(std::byte* at, std::size_t bytes) noexcept;

/// Maps zeroed memory anywhere; null if the system refuses.
std::byte* map(std::size_t bytes) noexcept;
/// Resizes a mapping, which may move. Null: the system refused, and the mapping is unchanged.
std::byte* remap(std::byte* at, std::size_t bytes, std::size_t bytes_new) noexcept;
/// Moves pages to a range that is mapped already. The range that they leave stays mapped and reads
/// as zero. Each move may add two mappings to the process. False: the system cannot (Linux before
/// 5.7), and nothing has changed.
bool move_pages(std::byte* from, std::byte* to, std::size_t bytes) noexcept;
/// Unmaps pages. False: the system refused, and the pages are still mapped.
bool unmap(std::byte* at, std::size_t bytes) noexcept;

/// Returns the pages to the system; the address space stays and reads as zero. Where the range has
/// only a part of a page, that part is set to zero instead. False: the system refused, as it does
/// for locked memory, and the contents are unchanged.
bool purge(std::byte* at, std::size_t bytes) noexcept;

/// Advises the system to use huge pages in this range (`wanted`), or to use none.
void advise_huge(std::byte* at, std::size_t bytes, bool wanted) noexcept;

} // namespace mallard::os
