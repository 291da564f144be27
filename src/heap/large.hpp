// Blocks that have no list: above 32 MiB, above 1 MiB in heaps, or aligned to more than a slice.
// Up to 32 MiB such a block is a span of slices from the slice heap. A larger block is a mapping of
// its own, which grows where the system finds room and is unmapped when it is freed. Beyond the
// first thousand mappings, larger blocks are spans as well.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

/// Null: refused. `zero`, if given: it reads as zero.
void* allocate_large(std::size_t bytes, std::size_t align, bool* zero = nullptr) noexcept;

/// The record of a span that is one block, of no class; its first entry says `what`. Null: refused.
slab* take_span_for_block(std::size_t bytes, std::size_t align, entry what, bool* zero) noexcept;

/// Bytes of the block of its own that begins at `p`; 0: there is none.
std::size_t large_bytes(const void* p) noexcept;

/// False: none begins there, and nothing has changed.
bool free_large(void* p) noexcept;

/// The same block with another size, perhaps elsewhere, without a copy; null: that is not
/// to be had, and nothing has changed.
void* resize_large(void* p, std::size_t bytes_new) noexcept;

struct huge_usage {
    std::size_t blocks = 0;
    std::size_t bytes = 0;
    std::size_t bytes_max = 0;
    std::size_t bytes_returned = 0; ///< since the start
};
huge_usage huge_now() noexcept;

/// The lock of the table of mappings, for the fork handlers.
os::lock& lock_of_huge() noexcept;

} // namespace mallard::engine
