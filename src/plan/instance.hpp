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
    bool is_timed = false;         ///< whether ends are timed: see `ending`
};
extern constinit rule_state rules[mallard_plan_rules_max];

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

struct instance {
    std::uint32_t allocator;   ///< as in `rule`
    std::uint32_t quick_bytes; ///< the largest request that may be served quickly: the largest
                               ///< block of the rule, or 0 if ends are timed
    thread_rules* thread;      ///< null if ends are timed, so that no request is served quickly
    counter blocks;            ///< requests that the rule has decided on
    counter bytes;             ///< of these requests

    // Of an arena. Each block has its size in the 8 bytes before it.
    std::byte* top; ///< the next block's size; 8 bytes before a multiple of 16
    std::byte* end;
    chunk* current;

    std::uint64_t live; ///< blocks in use, and those that other threads have freed unseen

    rule_state* rule;
    thread_rules* home; ///< the thread, even if ends are timed
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
    std::uint64_t blocks_before;       ///< `blocks` at the last new start

    /// The blocks of a class: a list, and the rest of a chunk.
    struct bin {
        free_block* free;
        std::byte* top;
        std::byte* end;
    } bins[class_count];
};

/// Allocates a block of at least `bytes` bytes, from 1 to `rule->block_bytes`, aligned to 16 bytes,
/// if this takes a few instructions. Otherwise returns null, and `take_slowly` may succeed. Only
/// the thread of the instance may call these functions.
[[gnu::always_inline]] inline void* take(instance& in, std::size_t bytes) noexcept;

/// Null: the rule holds as much as it may, or the system refused.
void* take_slowly(instance& in, std::size_t bytes) noexcept;

/// Frees a block of the instance. Only the thread of the instance may call this.
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

constexpr std::size_t arena_header_bytes = 8;

/// The bytes of a block of an arena with its header. The sum is a multiple of 16, so that `top`
/// stays 8 bytes before one.
constexpr std::size_t room_of(std::size_t bytes) noexcept
{
    return (bytes + arena_header_bytes + 15) & ~std::size_t{15};
}

/// Cuts a block of an arena off the current chunk.
[[gnu::always_inline]] inline void* cut(instance& in, std::size_t room) noexcept
{
    std::byte* const at = in.top;
    in.top = at + room;
    *reinterpret_cast<std::uint64_t*>(at) = room - arena_header_bytes;
    in.current->live += 1;
    in.live += 1;
    return at + arena_header_bytes;
}

inline void* take(instance& in, std::size_t bytes) noexcept
{
    if (in.allocator == mallard_plan_arena) {
        std::size_t const room = room_of(bytes);
        return room <= static_cast<std::size_t>(in.end - in.top) ? cut(in, room) : nullptr;
    }
    instance::bin& bin = in.bins[in.allocator == mallard_plan_pool ? 0 : class_of(bytes)];
    free_block* const block = bin.free;
    if (block == nullptr) [[unlikely]]
        return nullptr;
    bin.free = block->next;
    in.live += 1;
    return block;
}

inline void give(instance& in, chunk& c, void* block) noexcept
{
    in.live -= 1;
    if (c.block_bytes == 0) {
        if (--c.live == 0) [[unlikely]]
            empty(in, c);
        return;
    }
    auto* const freed = static_cast<free_block*>(block);
    instance::bin& bin = in.bins[c.block_class];
    freed->next = bin.free;
    bin.free = freed;
    if (in.live == 0) [[unlikely]]
        start_anew(in);
}

} // namespace mallard::plan
