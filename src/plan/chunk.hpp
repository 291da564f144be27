// Chunks: pieces of 64 KiB, from which the local allocators of the rules cut blocks. All chunks lie
// in one range of addresses, so that one comparison tells whether a block is of a rule.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mallard::plan {

struct bin;
struct free_block;
struct instance;

inline constexpr std::size_t chunk_bytes = std::size_t{64} << 10;

/// Not 0: a thread that is changing an instance looks like a null pointer.
inline constexpr std::uintptr_t no_thread = 1;
/// Is added to the address of a `quick_thread` that counts the blocks it frees. The sum is the
/// address of no thread, and a null pointer plus this is not `no_thread`.
inline constexpr std::uintptr_t counting = 2;
static_assert(counting != no_thread);

/// What a chunk is used for. Constant until the chunk is given back.
struct chunk_use {
    std::uintptr_t quick_thread; ///< the thread_rules of the thread that only pushes a block on
                                 ///< `list` to free it; or with `counting` of the thread that
                                 ///< calls `give_quickly`; or `no_thread`
    free_block** list;           ///< of a pool: in `blocks`
    bin* blocks;                 ///< of a pool: the bin of all its blocks
    instance* owner;
    std::uint32_t block_bytes; ///< of all blocks of a pool; 0: the chunk of an arena
};

/// The first bytes of a chunk. Blocks follow.
struct alignas(64) chunk : chunk_use {

    // Of an arena. `live` is the number of blocks that are allocated, less those that the owner has
    // seen freed. Only the thread of the owner uses `live`. Other threads count the blocks that
    // they free in `freed_elsewhere`. The thread that counts the first one then pushes the chunk on
    // `instance::touched`, where the owner takes the chunk, and subtracts the count from `live`.
    // Before, `live` is at least 1, so the chunk is not used again while another thread still
    // writes to its header. tests/models/plan_chunk.pml models this for Spin.
    std::uint32_t live = 0;
    std::atomic<std::uint32_t> freed_elsewhere = 0;
    chunk* next_touched = nullptr;
    chunk* next = nullptr; ///< in a list of the owner, or of free chunks

    std::byte* first() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
    std::byte* end() noexcept { return reinterpret_cast<std::byte*>(this) + chunk_bytes; }
};

/// The range of all chunks. Empty before the plan has started, and if there is no plan. The range
/// grows at its end. A thread that has a block from another thread sees a range with the block.
struct chunk_range {
    std::uintptr_t begin;
    std::atomic<std::size_t> bytes;
};
[[gnu::visibility("hidden")]] extern constinit chunk_range all_chunks;

/// Whether a block was allocated by a rule of the plan.
[[gnu::always_inline]] inline bool is_of_plan(const void* block) noexcept
{
    return reinterpret_cast<std::uintptr_t>(block) - all_chunks.begin <
           all_chunks.bytes.load(std::memory_order_relaxed);
}

inline chunk& chunk_of(const void* block) noexcept
{
    return *reinterpret_cast<chunk*>(reinterpret_cast<std::uintptr_t>(block) & -chunk_bytes);
}

/// Finds addresses for a range of at least half of `bytes_max`. False: the system refused.
bool place_chunks(std::size_t bytes_max = std::size_t{256} << 30) noexcept;

/// Takes a chunk whose bytes may have any values. Null: the system refused, or the lock was not
/// available for long.
chunk* take_chunk(chunk_use const& use) noexcept;
/// Gives a chunk without blocks back.
void give_chunk(chunk& c) noexcept;

/// Around a fork: no other thread takes a chunk meanwhile. Chunks that other threads give back are
/// free in the parent alone.
void lock_chunks() noexcept;
void unlock_chunks(bool is_child) noexcept;

} // namespace mallard::plan
