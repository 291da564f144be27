// The local allocator of one rule in one thread: a pool, a multipool, an arena, or a multipool that
// starts anew when all its blocks are free.
//
// The thread that owns an instance allocates and frees without atomic read-modify-writes. Any other
// thread that frees a block sends it back: a block of a pool to the list `returned`, and a block of
// an arena as a count in the header of its chunk.
#pragma once

#include "chunk.hpp"
#include "plan.hpp"

#include <mallard/detail/base/size_class.hpp>

#include <array>
#include <atomic>

namespace mallard::plan {

struct thread_rules;

/// Block sizes of multipools: multiples of 16 up to 128 bytes, then eight sizes per doubling.
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

/// What all threads share of a rule.
struct rule_state {
    std::atomic<std::size_t> held{0}; ///< bytes of its chunks
    std::atomic<std::size_t> held_peak{0};
    /// No chunk is taken beyond this. The first chunk of a thread, or of a class of a thread,
    /// raises the limit, because most of its pages may never be touched.
    std::atomic<std::size_t> held_max{SIZE_MAX};
    std::uint32_t block_bytes = 0; ///< the largest block
    std::uint32_t allocator = 0;   ///< mallard_plan_allocator, or 0: malloc serves every request
    bool is_quick = false;         ///< whether requests may be served without being counted
    bool is_timed = false;         ///< whether ends are timed: see `ending`. Then not `is_quick`
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

/// How long it takes to free the blocks of an instance one by one until none is left, with the
/// destructors that run meanwhile: what a program could skip that frees them at once. A row of
/// frees counts if no allocation interrupts it.
struct ending {
    std::uint64_t begin; ///< when the row began; 0: the instance last allocated
    std::uint64_t row;   ///< frees of the row
    counter nanoseconds; ///< of all rows that ended with the last block
    counter frees;       ///< of these rows
};

/// The free blocks of one size, or the chunk from which an arena cuts blocks. What an allocator
/// does not have is empty.
struct bin {
    // Of a pool or a multipool.
    free_block* free;
    free_block* counted; ///< instead of `free`: of a multipool over arena, whose `live` is counted
    instance* owner;
    std::byte* fresh; ///< the rest of a chunk
    std::byte* fresh_end;

    // Of an arena.
    std::byte* top; ///< the size of the next block: 8 bytes before a multiple of 16
    std::byte* end;
    chunk* current; ///< the chunk of `top`
};

/// The bin of requests that are not served quickly.
[[gnu::visibility("hidden")]] extern constinit bin no_bin;

struct instance {
    std::uint32_t allocator; ///< as in `rule`
    std::uint32_t bytes_max; ///< the largest block of the rule, or 0 if ends are timed
    thread_rules* thread;
    counter blocks; ///< requests that the rule has decided on, but not those served quickly
    counter bytes;  ///< of these requests

    /// Blocks in use, and those that other threads have freed unseen. A quick allocation or free
    /// does not count, except of a multipool over arena.
    std::uint64_t live;
    std::uint64_t frees; ///< of a multipool over arena, without those by other threads

    rule_state* rule;
    ending end_of;
    counter large;   ///< requests that are too large or too aligned, which malloc serves
    counter refused; ///< requests beyond `held_max` or without memory, which malloc serves

    // Of an arena.
    chunk* spare; ///< chunks without blocks
    std::size_t spare_count;
    std::atomic<chunk*> touched; ///< chunks with blocks that other threads have freed

    // Of a pool.
    std::atomic<free_block*> returned; ///< blocks that other threads have freed
    chunk* chunks;                     ///< all chunks
    std::uint64_t frees_before;        ///< `frees` at the last new start

    bin bins[class_count];

    /// An arena and a pool have a single bin.
    bin& bin_for(std::size_t request_bytes) noexcept
    {
        bool const has_classes =
            allocator == mallard_plan_multipool || allocator == mallard_plan_multipool_over_arena;
        return bins[has_classes ? class_of(request_bytes) : 0];
    }
};

/// Allocates a block of at least `bytes` bytes, from 1 to `rule->block_bytes`, aligned to 16 bytes,
/// if this takes a few instructions. Otherwise returns null, and `take_slowly` may succeed. Only
/// the thread of the instance may call these functions.
[[gnu::always_inline]] inline void* take(instance& in, std::size_t bytes) noexcept;

/// Null: the rule holds as much as it may, or the system refused.
void* take_slowly(instance& in, std::size_t bytes) noexcept;

/// Frees a block of a chunk that its thread may free quickly, but not only by a push. Only the
/// thread of the instance may call this, and the next function.
[[gnu::always_inline]] inline void give_quickly(chunk& c, void* block) noexcept;
/// Frees a block of the instance.
[[gnu::always_inline]] inline void give(instance& in, chunk& c, void* block) noexcept;
void empty(instance& in, chunk& c) noexcept;
void start_anew(instance& in) noexcept;

/// Frees a block of an instance of another thread, or in a signal handler that has interrupted the
/// thread of the instance.
void give_from_elsewhere(instance& in, chunk& c, void* block) noexcept;

/// Takes the blocks that others have freed. Only the thread of the instance may call this.
void take_freed_elsewhere(instance& in) noexcept;
/// Loses the blocks that others have freed, in the child of a fork.
void forget_freed_elsewhere(instance& in) noexcept;

/// The bytes of a block that the program may use.
inline std::size_t usable_bytes(chunk const& c, const void* block) noexcept
{
    return c.block_bytes != 0 ? c.block_bytes : static_cast<const std::uint64_t*>(block)[-1];
}

/// Frees a block of the instance, and times the row of frees. Only the thread of the instance may
/// call this.
void give_timed(instance& in, chunk& c, void* block) noexcept;

/// Makes the last block of an arena larger, up to `bytes`. False: there is no room behind it.
bool extend(instance& in, chunk& c, void* block, std::size_t bytes) noexcept;

// --- the paths of almost all calls ---

/// Each block of an arena has its size in the 8 bytes before it.
constexpr std::size_t arena_header_bytes = 8;

/// The bytes of a block of an arena with its header. The sum is a multiple of 16, so that `top`
/// stays 8 bytes before one.
constexpr std::size_t room_of(std::size_t bytes) noexcept
{
    return (bytes + arena_header_bytes + 15) & ~std::size_t{15};
}

/// Cuts a block of an arena off its chunk. Null: there is no room.
[[gnu::always_inline]] inline void* cut(bin& b, std::size_t bytes) noexcept
{
    std::byte* const at = b.top;
    // A bin without a chunk has null at both ends.
    if (static_cast<std::size_t>(b.end - at) < room_of(bytes))
        return nullptr;
    b.top = at + room_of(bytes);
    *reinterpret_cast<std::uint64_t*>(at) = room_of(bytes) - arena_header_bytes;
    b.current->live += 1;
    return at + arena_header_bytes;
}

/// The list must have a block.
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
    // `take_quickly` counts some blocks, and not others. Each is counted once.
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
