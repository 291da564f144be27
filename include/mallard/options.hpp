// The options of each allocator, as template arguments: a type reads as a
// sentence, and is laid out alike in every translation unit.
#pragma once

#include <mallard/growth.hpp>

namespace mallard {

/// Who may call a pool at the same time. A property of one pool, not of a build.
///
/// In the shared modes growth never holds a lock that a free needs, and the source
/// is called by one thread at a time, unless it is `shareable`; it must not call
/// back into the pool.
enum class sync {
    none,  ///< one thread at a time
    mutex, ///< any thread, one after the other: a pool behind a lock
    /// Any thread, a signal handler included; a thread that is suspended inside a call holds up no
    /// other thread. For pools that do not grow (`growth::none`): the first allocation takes the
    /// only chunk under a lock, and no later call locks, waits or calls the source. Call `trim`,
    /// too, only while no other thread is inside a call; `stats` is exact only then. The block
    /// freed last is allocated first, whatever `order` says. A block has at least 8 bytes, and 4
    /// more beside it. Not for a multipool.
    lock_free,
    /// Any thread, from a front of its own without a lock; blocks freed elsewhere
    /// return to their chunk. A thread holds at most `cached_bytes` worth of free
    /// blocks, or 1,024, and their array; what is left of its chunks goes to other
    /// threads before memory is refused. `order` has no effect; blocks are multiples
    /// of 8 bytes. Fronts and arrays come on top of the growth's limit. After a fork the child goes
    /// on with the pool. Needs the library.
    thread_cached
};

/// Which free block a pool gives next.
enum class reuse {
    lifo,    ///< the one freed last, by links in the free blocks: the shortest code
    ordered, ///< recently freed ones from an array, others in address order from a
             ///< bit each: free blocks are never read, so scattered frees stay fast
    fifo     ///< of up to 64 that were freed lately the one freed first, by links too: lists
             ///< whose nodes come and go stay in the order of memory
};

/// What is verified about the caller. See `pool` and `arena`.
enum class check { off, on };

/// What an allocator knows of an address.
enum class validity {
    miss,   ///< not in any of its chunks
    valid,  ///< the first byte of a block in use
    invalid ///< in its chunks, but inside a block, free, or never given out
};

struct arena_options {
    /// By four, since all steps of an arena that doubles are as much as twice the last,
    /// and when so much is free glibc lets the system have it; from what it finds without a
    /// search: see docs/decisions/0023.
    growth grow{.first = 1024, .max = std::size_t{1} << 24, .num = 4};
    std::size_t min_align = 1; ///< blocks start at multiples of it; saves code for smaller ones
    check checks = check::off; ///< verify the order of rewinds; tell Valgrind about blocks
};

struct pool_options {
    std::size_t block = 0;                    ///< bytes; 0: given to the constructor
    std::size_t align = 0;                    ///< 0: the natural one of `block`, to 16
    std::size_t chunk = std::size_t{1} << 16; ///< power of two: the bytes of a chunk of `ordered`,
                                              ///< and its alignment; more if blocks are large,
                                              ///< less under a low limit
    growth grow{.first = std::size_t{1} << 16};
    sync threads = sync::none;
    reuse order = reuse::ordered;
    std::size_t cached_bytes = std::size_t{1} << 18; ///< most worth of blocks in an array
    check checks = check::off;
    bool owned = false; ///< any block leads to whoever owns the pool, as `object_pool` needs:
                        ///< chunks are aligned as for `ordered`

    /// The smallest block, and the smallest step from one to the next. A list has its
    /// links in the blocks; and where threads free neighbours without a lock these share
    /// no word: AddressSanitizer has one byte for eight, and changes it as a whole.
    constexpr std::size_t block_min() const noexcept
    {
        bool const by_itself = threads == sync::lock_free || threads == sync::thread_cached;
        return by_itself || order != reuse::ordered ? sizeof(void*) : 1;
    }

    constexpr pool_options with(reuse another) const noexcept
    {
        pool_options changed = *this;
        changed.order = another;
        return changed;
    }
};

struct multipool_options {
    std::size_t largest = 32768; ///< the largest block that is pooled, inclusive
    /// The rest is as in `pool_options`, for each of the pools.
    std::size_t chunk = std::size_t{1} << 16;
    growth grow{.first = 2048, .max = std::size_t{1} << 20, .num = 4};
    sync threads = sync::none;
    reuse order = reuse::lifo;
    std::size_t cached_bytes = std::size_t{1} << 18;
    check checks = check::off;

    constexpr pool_options of_each_pool() const noexcept
    {
        return {.chunk = chunk,
                .grow = grow,
                .threads = threads,
                .order = order,
                .cached_bytes = cached_bytes,
                .checks = checks};
    }
};

/// Who shares the objects of a pool, and so what stands behind each.
enum class counts {
    none,  ///< nobody: `box`. Nothing
    local, ///< handles of one thread at a time: `rc` and `weak`. 8 bytes
    shared ///< handles of any thread: `arc` and `weak`. 8 bytes, changed atomically
};

struct object_pool_options {
    mallard::counts counts = mallard::counts::none; ///< what `rc`, `arc` and `weak` need
    /// The rest is as in `pool_options`. Growth at run time is not for an object_pool.
    std::size_t chunk = std::size_t{1} << 16;
    growth grow{.first = std::size_t{1} << 16};
    sync threads = sync::none;
    reuse order = reuse::ordered;
    std::size_t cached_bytes = std::size_t{1} << 18;
    check checks = check::off;

    constexpr pool_options of_slots(std::size_t bytes, std::size_t align) const noexcept
    {
        return {.block = bytes,
                .align = align,
                .chunk = chunk,
                .grow = grow,
                .threads = threads,
                .order = order,
                .cached_bytes = cached_bytes,
                .checks = checks,
                .owned = true};
    }
};

/// What an allocator holds, derived from its cursors and lists when asked.
struct statistics {
    std::size_t blocks_live = 0; ///< in use; an arena does not count them: 0
    std::size_t bytes_live = 0;  ///< in use
    std::size_t bytes_idle = 0;  ///< in chunks, not in use
    std::size_t bytes_taken = 0; ///< from the source: live, idle and bookkeeping
    std::size_t chunks = 0;
    std::size_t growths = 0; ///< growth steps, ever: not arrays, not large blocks
    /// How often, ever, a front that had nothing at hand got something to give: free
    /// blocks, slots to carve, or a new chunk; an arena, a chunk to go on in.
    std::size_t refills = 0;
    /// How often, ever, a front that was full let go of the older half.
    std::size_t flushes = 0;

    constexpr statistics& operator+=(const statistics& other) noexcept
    {
        blocks_live += other.blocks_live;
        bytes_live += other.bytes_live;
        bytes_idle += other.bytes_idle;
        bytes_taken += other.bytes_taken;
        chunks += other.chunks;
        growths += other.growths;
        refills += other.refills;
        flushes += other.flushes;
        return *this;
    }

    friend bool operator==(const statistics&, const statistics&) = default;
};

} // namespace mallard
