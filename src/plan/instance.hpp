// An instance is the local allocator of one rule in one thread. The allocator is a pool, a
// multipool, an arena, or a multipool over an arena, which resets when all its blocks are free.
//
// The thread that owns an instance allocates and frees without atomic read-modify-writes. If
// another thread frees a block of a pool, that thread pushes the block onto the list `returned`. If
// another thread frees a block of an arena, that thread counts the block in the header of its
// chunk.
#pragma once

#include "chunk.hpp"
#include "plan.hpp"

#include <mallard/detail/base/size_class.hpp>

#include <array>
#include <atomic>

namespace mallard::plan {

struct thread_rules;

/// The block sizes of multipools are multiples of 16 up to 128 bytes, then eight sizes per
/// doubling.
using block_classes = size_classes<16, 3>;
inline constexpr std::size_t class_count = block_classes::of(mallard_plan_block_max) + 1;

/// Entry i is the class of i * 16 bytes.
inline constexpr auto classes_by_16 = [] {
    std::array<std::uint8_t, 1024 / 16 + 1> table{};
    for (std::size_t i = 0; i < table.size(); ++i)
        table[i] = static_cast<std::uint8_t>(block_classes::of(i * 16));
    return table;
}();

constexpr std::size_t class_of(std::size_t bytes) noexcept
{
    return bytes <= 1024 ? classes_by_16[(bytes + 15) / 16] : block_classes::of(bytes);
}

/// The data of a rule that all threads share.
struct rule_state {
    std::atomic<std::size_t> held{0}; ///< bytes in chunks of the rule
    std::atomic<std::size_t> held_peak{0};
    /// The limit of `held`. The first chunk of a thread, or of a size class in a thread, raises the
    /// limit by its size, because most pages of that chunk may never be touched.
    std::atomic<std::size_t> held_max{SIZE_MAX};
    std::uint32_t block_bytes = 0; ///< size of the largest block that the rule serves
    std::uint32_t allocator = 0;   ///< mallard_plan_allocator, or 0 if malloc serves every request
    bool is_quick = false;         ///< whether requests may be served without being counted
    bool is_timed = false;         ///< whether `ending` is measured; excludes `is_quick`
};
[[gnu::visibility("hidden")]] extern constinit rule_state rules[mallard_plan_rules_max];

/// A counter that one thread writes and any thread reads.
class counter {
public:
    void add(std::uint64_t amount) noexcept
    {
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

/// A free block of a pool.
struct free_block {
    free_block* next;
};

/// A measurement of how long the program takes to free the blocks of an instance one by one until
/// none is left, with the destructors that run in between. A program that frees all blocks together
/// could save this time. Only a sequence of frees without an allocation in between is measured. A
/// pause of more than `ending_pause_max` ticks ends a sequence, because the program then does other
/// work.
struct ending {
    std::uint64_t begin; ///< when the sequence began; 0 if the last call allocated
    std::uint64_t last;  ///< when the last free of the sequence began
    std::uint64_t row;   ///< number of frees in the sequence
    counter ticks;       ///< total duration of the sequences that ended with no live block
    counter frees;       ///< number of frees in those sequences
    counter sequences;   ///< number of those sequences
};

/// The longest pause within a sequence of frees, in ticks. If ticks are from the time stamp
/// counter, this pause is some 2 to 4 microseconds. A destructor that frees a block takes less
/// time.
inline constexpr std::uint64_t ending_pause_max = 8192;

/// Starts the clock of `ending`. Must be called before the first block is freed.
void begin_ticks() noexcept;
/// Returns the mean duration of a tick since `begin_ticks`.
double nanoseconds_per_tick() noexcept;

/// The free blocks of one size, or the chunk from which an arena cuts blocks. The members that an
/// allocator does not use are null.
struct bin {
    // Used by pools and multipools.
    free_block* free;
    free_block* counted; ///< replaces `free` in a multipool over an arena
    instance* owner;
    std::byte* fresh; ///< start of the never-allocated rest of a chunk
    std::byte* fresh_end;

    // Used by arenas.
    std::byte* top; ///< address of the next block's size, 8 bytes below a multiple of 16
    std::byte* end;
    chunk* current; ///< the chunk that contains `top`
};

/// An empty bin, for requests that are not served quickly.
[[gnu::visibility("hidden")]] extern constinit bin no_bin;

struct instance {
    std::uint32_t allocator; ///< the kind of allocator, as in `rule`
    std::uint32_t bytes_max; ///< the largest block of the rule, or 0 if the rule `is_timed`
    thread_rules* thread;
    counter blocks; ///< requests for which the rule applied, without those served quickly
    counter bytes;  ///< sum of the sizes of these requests

    /// The number of blocks in use, including those that other threads have freed without the owner
    /// having noticed. A quick allocation or free does not change this number, except in a
    /// multipool over an arena.
    std::uint64_t live;

    rule_state* rule;
    ending end_of;
    counter large;   ///< requests that malloc served because of their size or alignment
    counter refused; ///< requests that malloc served because of `held_max` or lack of memory

    // Used by arenas.
    chunk* spare; ///< chunks without blocks
    std::size_t spare_count;
    std::atomic<chunk*> touched; ///< chunks with blocks that other threads have freed

    // Used by pools and multipools.
    std::atomic<free_block*> returned; ///< blocks that other threads have freed
    chunk* chunks;                     ///< all chunks
    /// In a multipool over an arena, the number of frees by this thread. Not next to `live`,
    /// because the compiler would load both with one instruction, which would wait for the last
    /// store to `live`.
    std::uint64_t frees;
    std::uint64_t frees_before; ///< `frees` at the last reset (`start_anew`)

    bin bins[class_count];

    /// Returns the bin that serves a request. An arena and a pool have a single bin.
    bin& bin_for(std::size_t request_bytes) noexcept
    {
        bool const has_classes =
            allocator == mallard_plan_multipool || allocator == mallard_plan_multipool_over_arena;
        return bins[has_classes ? class_of(request_bytes) : 0];
    }
};

/// Allocates a block of at least `bytes` bytes that is aligned to 16 bytes, if a few instructions
/// suffice. Otherwise returns null, and `take_slowly` may succeed. `bytes` must be from 1 to
/// `rule->block_bytes`. Only the thread of the instance may call this function and `take_slowly`.
[[gnu::always_inline]] inline void* take(instance& in, std::size_t bytes) noexcept;

/// Allocates a block, also from a new chunk. Returns null if the rule has reached `held_max`, or if
/// the system supplies no memory.
void* take_slowly(instance& in, std::size_t bytes) noexcept;

/// Frees a block of a chunk that is marked `counting` or `in_arena` (in `quick_thread`), and counts
/// the free. If a chunk of an arena then has no blocks, calls `empty`, which reuses or frees the
/// chunk. In other instances, calls `start_anew` if the instance then has no blocks. Only the
/// thread of the instance may call this function and `give`.
[[gnu::always_inline]] inline void give_quickly(chunk& c, void* block) noexcept;
/// Frees a block of the instance.
[[gnu::always_inline]] inline void give(instance& in, chunk& c, void* block) noexcept;
void empty(instance& in, chunk& c) noexcept;
void start_anew(instance& in) noexcept;

/// Frees a block that belongs to an instance of another thread. Also frees a block in a signal
/// handler that has interrupted a change of the instance.
void give_from_elsewhere(instance& in, chunk& c, void* block) noexcept;

/// Makes the blocks available that other threads have freed. Only the thread of the instance may
/// call this function.
void take_freed_elsewhere(instance& in) noexcept;
/// Discards the blocks that other threads have freed. Called in the child of a fork.
void forget_freed_elsewhere(instance& in) noexcept;

/// Returns the number of bytes in a block that the program may use.
inline std::size_t usable_bytes(chunk const& c, const void* block) noexcept
{
    return c.block_bytes != 0 ? c.block_bytes : static_cast<const std::uint64_t*>(block)[-1];
}

/// Frees a block of the instance, and measures the time of the sequence of frees (see `ending`).
/// Only the thread of the instance may call this function.
void give_timed(instance& in, chunk& c, void* block) noexcept;

/// Enlarges the last block of an arena to `bytes`. Returns false if the block is not the last, or
/// if there is no room after it.
bool extend(instance& in, chunk& c, void* block, std::size_t bytes) noexcept;

// --- the paths of almost all calls ---

/// In an arena, the 8 bytes before each block contain the size of the block.
constexpr std::size_t arena_header_bytes = 8;

/// Returns the size of an arena block with its header. The sum is a multiple of 16, so that `top`
/// stays 8 bytes below a multiple of 16.
constexpr std::size_t room_of(std::size_t bytes) noexcept
{
    return (bytes + arena_header_bytes + 15) & ~std::size_t{15};
}

/// Allocates a block of an arena from the current chunk. Returns null if there is no room.
[[gnu::always_inline]] inline void* cut(bin& b, std::size_t bytes) noexcept
{
    std::byte* const at = b.top;
    // In a bin without a chunk, `top` and `end` are null.
    if (static_cast<std::size_t>(b.end - at) < room_of(bytes))
        return nullptr;
    b.top = at + room_of(bytes);
    *reinterpret_cast<std::uint64_t*>(at) = room_of(bytes) - arena_header_bytes;
    b.current->live += 1;
    return at + arena_header_bytes;
}

/// Removes and returns the first block of a list. The list must not be empty.
[[gnu::always_inline]] inline void* pop(free_block*& list) noexcept
{
    free_block* const block = list;
    list = block->next;
    return block;
}

[[gnu::always_inline]] inline void push(free_block*& list, void* block) noexcept
{
    auto* const freed = static_cast<free_block*>(block);
    freed->next = list;
    list = freed;
}

[[gnu::always_inline]] inline void* take_quickly(bin& b, std::size_t bytes) noexcept
{
    if (b.free != nullptr) [[likely]]
        return pop(b.free);
    if (b.counted != nullptr) {
        b.owner->live += 1;
        return pop(b.counted);
    }
    return cut(b, bytes);
}

inline void* take(instance& in, std::size_t bytes) noexcept
{
    // `take_quickly` increments `live` only for some blocks. Make sure that each block is counted
    // once.
    std::uint64_t const live = in.live;
    void* const block = take_quickly(in.bin_for(bytes), bytes);
    if (block != nullptr)
        in.live = live + 1;
    return block;
}

inline void give_quickly(chunk& c, void* block) noexcept
{
    if (c.block_bytes == 0) {
        if (--c.live == 0) [[unlikely]]
            empty(*c.owner, c);
        return;
    }
    instance& in = *c.owner;
    in.live -= 1;
    in.frees += 1;
    push(*c.list, block);
    if (in.live == 0) [[unlikely]]
        start_anew(in);
}

inline void give(instance& in, chunk& c, void* block) noexcept
{
    if (c.block_bytes == 0)
        in.live -= 1;
    give_quickly(c, block);
}

} // namespace mallard::plan
