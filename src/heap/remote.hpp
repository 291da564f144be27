// Blocks that are freed by another thread than the one whose slab they are of.
//
// They are collected, a batch for each of a few slabs, and sent as one message: its last
// block, which knows the first and how many there are, goes onto the owner's inbox. The
// owner splices it into its slab without looking at the blocks between. (Batches a slab:
// snmalloc, and BatchIt, ISMM 2024; splicing in constant time: rpmalloc.)
//
// The inbox is a stack to which anybody pushes and from which one takes all, so no block
// that is in it can come back while somebody looks at it. Blocks on their way count as
// used: their slab can go nowhere. It may change its owner, when that one's thread has
// ended; so a message says where it is for by its address alone, and who gets one that is
// not his sends it on.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

/// Into a batch of this thread cache; sends what has to make room.
void add_to_batch(thread_cache& cache, slab& s, void* block) noexcept;

/// Sends what is collected.
void send_batches(thread_cache& cache) noexcept;

/// One block at once, for threads that have no thread cache.
void send_block(slab& s, void* block) noexcept;

/// Splices what others have sent: some of it, or all.
void read_messages(thread_cache& cache, std::size_t messages_max = 64) noexcept;

} // namespace mallard::engine
