// Frees of blocks whose slab belongs to another thread's cache.
//
// A thread collects such blocks in batches, one batch for each of up to 32 slabs, and sends each
// batch as one message. The last block of a batch records the first block and the number of blocks.
// To send the batch, the thread pushes this last block onto the inbox of the cache that owns the
// slab. The owner splices the batch into the slab without touching the blocks in between. (Batches
// per slab: snmalloc, and BatchIt, ISMM 2024; splicing in constant time: rpmalloc.)
//
// An inbox is a stack. All threads push single messages, and the owner removes all messages
// together, so there is no ABA problem. The blocks of a message count as used, so their slab is not
// freed in the meantime. But another thread may reclaim the slab after its owner has exited. So a
// thread that reads a message forwards the message if the thread no longer owns the slab.
//
// tests/models/engine_remote.pml models this protocol for Spin.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

/// Adds a block to the batch of its slab, and sends the batch if it is full. If another slab's
/// batch occupies the same element of the outbox, sends that batch first.
void add_to_batch(thread_cache& cache, slab& s, void* block) noexcept;

/// Sends all batches of remote frees.
void send_batches(thread_cache& cache) noexcept;

/// Sends a single block immediately. The calling thread needs no cache.
void send_block(slab& s, void* block) noexcept;

/// Reads up to `messages_max` messages from the inbox and splices their blocks into the slabs.
void read_messages(thread_cache& cache, std::size_t messages_max = 64) noexcept;

} // namespace mallard::engine
