// The options of the allocators, which are template arguments, and their statistics.
#pragma once

#include <mallard/growth.hpp>

namespace mallard {

/// Which threads may call a pool at the same time. An option of each pool, not of a build.
///
///     constexpr mallard::pool_options shared{.block = 64,
///                                            .threads = mallard::sync::thread_cached};
///     constinit mallard::pool<mallard::default_heap, shared> messages;
///
/// The modes for several threads need <mallard/sync.hpp>. In all of them, growth never holds a lock
/// that a free needs. One thread at a time calls the source, unless the source is `shareable`. The
/// source must not call the pool.
enum class sync {
    none,  ///< one thread at a time
    mutex, ///< any thread; each call holds a lock
    /// Any thread, a signal handler included; a thread that is suspended inside a call holds up no
    /// other thread. For pools that do not grow (`growth::none`): the first allocation takes the
    /// only chunk under a lock, and no later call locks, waits or calls the source. Call `trim`,
    /// too, only while no other thread is inside a call; `stats` is exact only then. The block
    /// freed last is allocated first, whatever `order` says. A block has at least 8 bytes, and 4
    /// more beside it. Not for a multipool.
    lock_free,
    /// Any thread; most calls use a cache of the thread and take no lock. Blocks that another
    /// thread frees return to their chunk. A thread caches at most 1,024 free blocks, or
    /// `cached_bytes` worth of them. An allocation fails only if no thread has a free block.
    /// `order` has no effect; blocks are multiples of 8 bytes. Caches and their arrays come on top
    /// of the limit of the growth. The child of a fork can use the pool. Needs the library.
    thread_cached
};

/// Which free block a pool gives next.
enum class reuse {
    lifo,    ///< the block freed last; links are in the free blocks: the shortest code
    ordered, ///< recently freed blocks from an array, others in address order from a bitmap:
             ///< free blocks are never read, so frees in random order stay fast
    fifo     ///< the block freed first among the last 64; links are in the free blocks: lists
             ///< whose nodes come and go stay in the order of memory
};

/// Whether calls are verified, and Valgrind is told about free blocks. See `pool` and `arena`.
enum class check { off, on };

/// What a pool knows about an address: the result of `classify`.
enum class validity {
    miss,   ///< not in a chunk of the pool
    valid,  ///< the first byte of a block in use
    invalid ///< in a chunk, but inside a block, free, or never allocated
};

/// Options of `arena` and `shared_arena`.
///
///     mallard::arena<mallard::default_heap, mallard::arena_options{.checks = mallard::check::on}>
///     a;
struct arena_options {
    /// Grow by 4x: with doubling, the freed steps exceed glibc's trim threshold and are faulted
    /// again (docs/decisions/0023).
    growth grow{.first = 1024, .max = std::size_t{1} << 24, .num = 4};
    std::size_t min_align =
        1; ///< the least alignment of blocks; makes less-aligned requests shorter
    check checks = check::off; ///< verify the order of rewinds; tell Valgrind about free memory
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

/// Which shared handles an object_pool has. The counts of handles stand behind each object.
///
///     mallard::object_pool<mesh, mallard::default_heap,
///                          mallard::object_pool_options{.counts = mallard::counts::local}> meshes;
///     auto first = meshes.make_rc("tree.obj");
enum class counts {
    none,  ///< `box` only: no counts
    local, ///< `rc` and `weak`, for one thread at a time: 8 bytes an object
    shared ///< `arc` and `weak`, for any thread: 8 bytes an object, changed atomically
};

/// Options of `object_pool`.
///
///     mallard::object_pool<order, mallard::default_heap,
///                          mallard::object_pool_options{.checks = mallard::check::on}> orders;
struct object_pool_options {
    mallard::counts counts = mallard::counts::none; ///< for `rc`, `arc` and `weak`
    /// The others are as in `pool_options`. The growth must be a constant: not `at_run_time`.
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

/// What an allocator holds, computed when `stats` is called.
struct statistics {
    std::size_t blocks_live = 0; ///< blocks in use; 0 in an arena, which does not count them
    std::size_t bytes_live = 0;  ///< bytes in use
    std::size_t bytes_idle = 0;  ///< bytes in chunks that are not in use
    std::size_t bytes_taken = 0; ///< bytes taken from the source: live, idle and bookkeeping
    std::size_t chunks = 0;
    std::size_t growths = 0; ///< growth steps since construction, without arrays and large blocks
    /// How often, since construction, an empty cache was refilled: with free blocks, slots to
    /// carve, or a new chunk. For an arena: how often it went on to another chunk.
    std::size_t refills = 0;
    /// How often, since construction, a full cache returned the older half of its blocks.
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
