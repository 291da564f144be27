// Chunks are pieces of 64 KiB, which the local allocators of the rules cut into blocks. All chunks
// are in one address range, so that one comparison shows whether a rule allocated a block.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mallard::plan {

struct bin;
struct free_block;
struct instance;

inline constexpr std::size_t chunk_bytes = std::size_t{64} << 10;

/// The value of `quick_thread` that equals no thread. The value must not be 0, because `ready`
/// returns null for a thread that is changing an instance.
inline constexpr std::uintptr_t no_thread = 1;
/// The number that is added to the address in `quick_thread` if the thread counts the blocks that
/// it frees. The sum is not the address of another thread, and a null pointer plus this number is
/// not `no_thread`.
inline constexpr std::uintptr_t counting = 2;
/// Like `counting`, for a chunk of an arena.
inline constexpr std::uintptr_t in_arena = 4;
static_assert(counting != no_thread && in_arena != no_thread);

/// The use of a chunk. Constant until the chunk is freed.
struct chunk_use {
    std::uintptr_t quick_thread; ///< the thread_rules of the thread that only pushes a block onto
                                 ///< `list` to free it; or, plus `counting` or `in_arena`, of the
                                 ///< thread that calls `give_quickly`; or `no_thread`
    free_block** list;           ///< in a pool: free list in `blocks`
    bin* blocks;                 ///< in a pool: the bin of all its blocks
    instance* owner;
    std::uint32_t block_bytes; ///< block size of a pool; 0 in a chunk of an arena
};

/// The header at the start of a chunk. The blocks follow.
struct alignas(64) chunk : chunk_use {

    // Used by arenas. `live` is the number of allocated blocks minus those that the owner's thread
    // has freed or found to be freed. Only the owner's thread uses `live`. Other threads count the
    // blocks that they free in `freed_elsewhere`. The thread that counts the first such block then
    // pushes the chunk onto `instance::touched`. The owner removes the chunk from there, and
    // subtracts the count from `live`. Until then, `live` is at least 1, so the chunk is not reused
    // while another thread still writes to its header. tests/models/plan_chunk.pml models this for
    // Spin.
    std::uint32_t live = 0;
    std::atomic<std::uint32_t> freed_elsewhere = 0;
    chunk* next_touched = nullptr;
    chunk* next = nullptr; ///< in a list of the owner, or of free chunks

    std::byte* first() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
    std::byte* end() noexcept { return reinterpret_cast<std::byte*>(this) + chunk_bytes; }
};

/// The address range of all chunks. The range is empty before the plan has started, and if there is
/// no plan. The range grows at its end. A thread that receives a block from another thread sees a
/// range that includes the block.
struct chunk_range {
    std::uintptr_t begin;
    std::atomic<std::size_t> bytes;
};
[[gnu::visibility("hidden")]] extern constinit chunk_range all_chunks;

/// Returns whether a rule of the plan allocated a block.
[[gnu::always_inline]] inline bool is_of_plan(const void* block) noexcept
{
    return reinterpret_cast<std::uintptr_t>(block) - all_chunks.begin <
           all_chunks.bytes.load(std::memory_order_relaxed);
}

inline chunk& chunk_of(const void* block) noexcept
{
    return *reinterpret_cast<chunk*>(reinterpret_cast<std::uintptr_t>(block) & -chunk_bytes);
}

/// Finds free addresses where the range can grow, up to half of `bytes_max` bytes. Returns false if
/// the system supplies none.
bool place_chunks(std::size_t bytes_max = std::size_t{256} << 30) noexcept;

/// Allocates a chunk whose bytes may have any values. Returns null if the system supplies no
/// memory, or if the lock was not available for 20 ms.
chunk* take_chunk(chunk_use const& use) noexcept;
/// Frees a chunk that has no blocks.
void give_chunk(chunk& c) noexcept;

/// Lock the chunks before a fork, and unlock them afterwards. During the fork, no other thread
/// allocates a chunk. Chunks that other threads free during the fork become free only in the
/// parent.
void lock_chunks() noexcept;
void unlock_chunks(bool is_child) noexcept;

} // namespace mallard::plan
