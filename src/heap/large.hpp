// Large blocks, which no thread cache caches after the free. A block of malloc is large above 32
// MiB, and a block of a `mallard::heap` above 1 MiB. A block that is aligned to more than a slice
// (16 KiB) is large, too. A large block of at most 32 MiB is a span of the slice heap. A larger
// block of malloc has a dedicated mapping, which can grow or move by mremap and is unmapped when
// the block is freed. If there are 1,024 such mappings already, further blocks are spans, whatever
// their size.
#pragma once

#include "thread_cache.hpp"

#include "../os/lock.hpp"

namespace mallard::engine {

/// Allocates a large block that is not sampled. If the allocation fails, returns null and sets
/// errno to ENOMEM. Unless `zero` is null, sets `*zero` to whether all bytes of the block are 0.
void* take_large(std::size_t bytes, std::size_t align, bool* zero) noexcept;

/// Allocates a span for one block without a size class. Sets the map entry of the first slice to
/// `what`. Returns null if the allocation fails.
slab* take_span_for_block(std::size_t bytes, std::size_t align, entry what, bool* zero) noexcept;

/// Returns the usable bytes of the large block at `p`, or 0 if no large block begins at `p`.
std::size_t large_bytes(const void* p) noexcept;

/// Frees the large block at `p`. If no large block begins at `p`, changes nothing and returns
/// false.
bool free_large(void* p) noexcept;

/// Resizes a large block without a copy. The block may move. If the block cannot be resized,
/// changes nothing and returns null.
void* resize_large(void* p, std::size_t bytes_new) noexcept;

/// Moves the contents of a block to another block. `zero` is true if all bytes of that block are 0.
/// Pages that the program has not touched stay untouched, unless the new block had pages before.
/// The contents of the old block are undefined afterwards.
void move_contents(void* to, void* from, std::size_t bytes, bool zero) noexcept;

/// Sums over all blocks with a dedicated mapping.
struct huge_usage {
    std::size_t blocks = 0;
    std::size_t bytes = 0;
    std::size_t bytes_max = 0;
    std::size_t bytes_returned = 0; ///< returned to the system since the start of the process
};
huge_usage huge_now() noexcept;

/// Returns the lock of the mapping table, for the fork handlers.
os::lock& lock_of_huge() noexcept;

} // namespace mallard::engine
