// Large blocks, which no thread cache keeps after the free. A block of malloc is large above 32
// MiB, and a block of a `mallard::heap` above 1 MiB. A block that is aligned to more than a slice
// (16 KiB) is large too. A large block of at most 32 MiB is a span of the slice heap. A block of
// more than 32 MiB has a mapping of its own: it can grow or move by mremap, and is unmapped when it
// is freed. If there are 1,024 such mappings already, the block is a span, too.
#pragma once

#include "thread_cache.hpp"

#include "../os/lock.hpp"

namespace mallard::engine {

/// Allocates a large block that is not sampled. Null: the allocation failed, and errno is ENOMEM.
/// Sets `*zero`, unless `zero` is null, to whether the block reads as zero.
void* take_large(std::size_t bytes, std::size_t align, bool* zero) noexcept;

/// Allocates a span for one block without a size class. Sets the map entry of its first slice to
/// `what`. Null: the allocation failed.
slab* take_span_for_block(std::size_t bytes, std::size_t align, entry what, bool* zero) noexcept;

/// The usable bytes of the large block at `p`; 0 if no large block begins there.
std::size_t large_bytes(const void* p) noexcept;

/// Frees the large block at `p`. False: no large block begins there, and nothing has changed.
bool free_large(void* p) noexcept;

/// Resizes a large block without a copy; the block may move. Null: the block cannot be resized, and
/// nothing has changed.
void* resize_large(void* p, std::size_t bytes_new) noexcept;

/// Moves the contents of a block to a block that reads as zero if `zero` is true. Pages that the
/// program has not touched stay untouched, unless the new block had pages before. The contents of
/// the old block are undefined afterwards.
void move_contents(void* to, void* from, std::size_t bytes, bool zero) noexcept;

/// Sums over all blocks with a mapping of their own.
struct huge_usage {
    std::size_t blocks = 0;
    std::size_t bytes = 0;
    std::size_t bytes_max = 0;
    std::size_t bytes_returned = 0; ///< returned to the system since the start of the process
};
huge_usage huge_now() noexcept;

/// The lock of the mapping table, for the fork handlers.
os::lock& lock_of_huge() noexcept;

} // namespace mallard::engine
