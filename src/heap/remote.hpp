// Blocks that are freed by another thread than the one whose slab they are of.
//
// They are collected, a parcel for each of a few slabs, and sent as one message: its last
// block, which knows the first and how many there are, goes onto the owner's inbox. The
// owner splices it into its slab without looking at the blocks between. (Batches a slab:
// snmalloc, and BatchIt, ISMM 2024; splicing in constant time: rpmalloc.)
//
// The inbox is a stack to which anybody pushes and from which one takes all, so no block
// that is in it can come back while somebody looks at it. Blocks on their way count as
// used: their slab can go nowhere. It may change its owner, when that one's thread has
// ended; so a letter says where it is for by its address alone, and who gets one that is
// not his sends it on.
#pragma once

#include "front.hpp"

namespace mallard::engine {

/// Into a parcel of this front; sends what has to make room.
void collect(front& f, slab& s, void* block) noexcept;

/// Sends what is collected.
void send_all(front& f) noexcept;

/// One block at once, for threads that have no front.
void send_one(slab& s, void* block) noexcept;

/// Splices what others have sent: some of it, or all.
void read_letters(front& f, std::size_t letters_max = 64) noexcept;

} // namespace mallard::engine
