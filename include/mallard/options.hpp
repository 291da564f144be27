// The options of the allocators, which are template arguments, and their statistics.
#pragma once

#include <mallard/growth.hpp>

namespace mallard {

/// Which threads may call a pool at the same time. You choose this option for each pool, not for a
/// build.
///
///     constexpr mallard::pool_options shared{.block = 64,
///                                            .threads = mallard::sync::thread_cached};
///     constinit mallard::pool<mallard::default_heap, shared> messages;
///
/// The modes for several threads need <mallard/sync.hpp>. In all of these modes, a free never waits
/// for a thread that requests memory from the source. One thread at a time calls the source, unless
/// the source is `shareable`. The source must not call the pool.
enum class sync {
    none,  ///< one thread at a time
    mutex, ///< any thread; each call holds a lock
    /// Any thread may call, and so may a signal handler. If a thread is suspended inside a call, no
    /// other thread has to wait for it. Available only for pools that do not grow (`growth::none`).
    /// The first allocation requests the only chunk, under a lock. Later calls neither lock nor
    /// wait nor call the source. Call `trim` only while no other thread is inside a call; `stats`
    /// is exact only then. `order` has no effect, because the block freed last is always allocated
    /// first. A block has at least 8 bytes, and needs 4 bytes more for a link outside the block. A
    /// multipool cannot use this mode, because it grows.
    lock_free,
    /// Any thread may call. Most calls use a cache of the thread and lock nothing. Blocks that
    /// another thread frees return to their chunk. A thread caches at most 1,024 free blocks, and
    /// at most `cached_bytes` bytes of free blocks. Before an allocation fails, the pool uses the
    /// free blocks in the caches of other threads. `order` has no effect. The size of a block is a
    /// multiple of 8 bytes. The memory of caches does not count towards the limit of the growth.
    /// The child of a fork can use the pool. Needs the compiled library.
    thread_cached
};

/// Which free block a pool allocates next.
enum class reuse {
    /// The block freed last, from a linked list through the free blocks. This order needs the
    /// fewest instructions.
    lifo,
    /// First the recently freed blocks, from an array, and then the others in address order, from a
    /// bitmap. Free blocks are never read, so frees in random order stay fast.
    ordered,
    /// The block freed first, from a queue of up to 64 blocks at the start of a linked list through
    /// the free blocks. If a program frees and allocates the nodes of a linked list again and
    /// again, the nodes then stay in address order.
    fifo
};

/// Whether an allocator verifies calls and marks free blocks for Valgrind. See `pool` and `arena`.
enum class check {
    off, ///< no checks: the shortest code
    on   ///< an invalid call stops the process with a message
};

/// What kind of address a pointer is for a pool. This is the result of `classify`.
enum class validity {
    miss,   ///< not in a chunk of the pool
    valid,  ///< the first byte of a block in use
    invalid ///< in a chunk of the pool, but inside a block, free, or never allocated
};

/// Options of `pool`.
///
///     mallard::pool<mallard::default_heap, mallard::pool_options{.block = 48}> nodes;
struct pool_options {
    std::size_t block = 0; ///< bytes of a block; 0: an argument of the constructor
    std::size_t align = 0; ///< 0: the largest power of two up to 16 that divides `block`
    /// Size and alignment of the chunks with `reuse::ordered`, in bytes. Must be a power of two.
    /// Chunks are larger for large blocks, and smaller under a low limit.
    std::size_t chunk = std::size_t{1} << 16;
    growth grow{.first = std::size_t{1} << 16}; ///< the sizes of the chunk requests
    sync threads = sync::none;                  ///< needs <mallard/sync.hpp> if it is not `none`
    reuse order = reuse::ordered;               ///< which free block is allocated next
    /// Maximum total bytes of the free blocks in one magazine (array of pointers to free blocks).
    /// Each thread cache has one magazine. Without thread caches, an ordered pool has one.
    std::size_t cached_bytes = std::size_t{1} << 18;
    check checks = check::off; ///< verify calls, and mark free blocks for Valgrind
    /// Whether `owner_of` can find the owner of a block. Chunks are then aligned as for
    /// `reuse::ordered`.
    bool owned = false;

    /// Returns the minimum size of a block. All block sizes are multiples of this size. A free list
    /// needs room for a link in each free block. Where threads free adjacent blocks without a lock,
    /// two blocks must not share an aligned group of 8 bytes, because AddressSanitizer describes
    /// each group by one byte, and changes this byte without an atomic operation.
    constexpr std::size_t block_min() const noexcept
    {
        bool const by_itself = threads == sync::lock_free || threads == sync::thread_cached;
        return by_itself || order != reuse::ordered ? sizeof(void*) : 1;
    }

    /// Returns a copy of these options in which the order is `another`.
    constexpr pool_options with(reuse another) const noexcept
    {
        pool_options changed = *this;
        changed.order = another;
        return changed;
    }
};

/// Which shared handles an object_pool has. The reference counts are stored after each object.
///
///     mallard::object_pool<mesh, mallard::default_heap,
///                          mallard::object_pool_options{.counts = mallard::counts::local}> meshes;
///     auto first = meshes.make_rc("tree.obj");
enum class counts {
    none,  ///< `box` only: no counts
    local, ///< `rc` and `weak`, for one thread at a time: 8 bytes for each object
    shared ///< `arc` and `weak`, for any thread: 8 bytes for each object, changed atomically
};

/// The memory that an allocator holds, computed when `stats` is called.
struct statistics {
    std::size_t blocks_live = 0; ///< blocks in use; 0 in an arena, which does not count them
    std::size_t bytes_live = 0;  ///< bytes in use
    std::size_t bytes_idle = 0;  ///< free bytes, held for later blocks
    std::size_t bytes_taken = 0; ///< live, idle and bookkeeping bytes from the source
    std::size_t chunks = 0;      ///< number of chunks, used or idle
    /// Number of chunk requests since construction, without those for arrays and large blocks.
    std::size_t growths = 0;
    /// How often, since construction, an empty cache was refilled from free blocks, from slots that
    /// were never used, or from a new chunk. For an arena, how often the arena started another
    /// chunk.
    std::size_t refills = 0;
    /// How often, since construction, a full cache returned the older half of its blocks.
    std::size_t flushes = 0;

    /// Adds the statistics of another allocator.
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
