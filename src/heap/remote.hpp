// Frees of blocks whose slab belongs to another thread's cache.
//
// A thread collects such blocks in batches, one batch for each of a few slabs. It sends a batch as
// one message. The last block of the batch records the first block and the number of blocks. To
// send the batch, the thread pushes this last block onto the inbox of the cache that owns the slab.
// The owner splices a batch into its slab without touching the blocks in between. (Batches per
// slab: snmalloc, and BatchIt, ISMM 2024; splicing in constant time: rpmalloc.)
//
// An inbox is a stack. All threads push single messages, and the owner takes all messages at once,
// so there is no ABA problem. The blocks of a message count as used, so their slab is not freed in
// the meantime. But another thread may reclaim the slab after its owner has ended. So a thread that
// reads a message forwards the message if the slab is no longer its own.
//
// tests/models/engine_remote.pml models this protocol for Spin.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

/// Adds a block to the batch of its slab, and sends the batch if it is full. If the batch of
/// another slab occupies the place of this slab in the outbox, sends that batch first.
void add_to_batch(thread_cache& cache, slab& s, void* block) noexcept;

/// Sends all batches.
void send_batches(thread_cache& cache) noexcept;

/// Sends one block at once. Needs no cache.
void send_block(slab& s, void* block) noexcept;

/// Reads up to `messages_max` messages and splices their blocks into the slabs.
void read_messages(thread_cache& cache, std::size_t messages_max = 64) noexcept;

} // namespace mallard::engine
