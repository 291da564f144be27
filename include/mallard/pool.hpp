// A pool, which allocates and frees blocks of one size in constant time.
#pragma once

#include <mallard/detail/pool/large_blocks.hpp>
#include <mallard/detail/pool/pool_core.hpp>

namespace mallard {

/// Allocates blocks of one size and frees them one by one.
///
///     mallard::pool<> nodes(sizeof(node));
///     void* block = nodes.allocate();    // throws when the source is exhausted
///     nodes.deallocate(block);
///
///     mallard::pool<mallard::default_heap, mallard::pool_options{.block = 48}> nodes;
///
/// A pool requests no memory before the first allocation. Then it requests chunks of 64 KiB from
/// its source, one at first, then twice as many in each request, up to 1 MiB. Memory of blocks that
/// were never allocated is not touched. The pool allocates freed blocks first, then blocks that
/// were never used, and then it grows. A block has `block_bytes()` bytes, which is the requested
/// size rounded up to a multiple of the alignment. A block has no header. In addition to the
/// blocks, a pool needs 1/8 byte for each block, 104 bytes for each chunk, and with
/// `reuse::ordered` 8 bytes for each recently freed block.
///
/// `reuse::ordered` (the default) is faster than `reuse::lifo` when many blocks are freed in random
/// order (see `reuse`). The pool keeps its chunks until `trim`, `release` or the destructor is
/// called.
///
/// `allocate` throws `std::bad_alloc`, or what the source throws; the `try_` forms return null. A
/// failed call changes nothing. It is an error to free a block of another pool, or a block that is
/// free already. With `check::on`, such a call stops the process. The check costs O(log chunks) for
/// each call, and one bit for each block.
///
/// One thread at a time may use a pool, unless `Options.threads` allows more. A pool for several
/// threads needs <mallard/sync.hpp>, and is neither copied nor moved. Call its `for_each`, `reset`,
/// `release` and destructor only while no other thread is inside a call. Any thread may call all
/// other functions at any time.
///
/// The functions with a `layout` also accept layouts that do not fit a block, and allocate these
/// large blocks from the source. So a container may allocate both its nodes and its table from one
/// pool. The layout decides between pool and source, so `deallocate` needs the same layout as the
/// allocation. The limit in the growth rule does not apply to large blocks. A pool with
/// `growth::none` requests its only chunk before its first large block, which could otherwise use
/// up the source.
///
/// Containers of `std::pmr` find no matching constructor for a `pool*`. For them, write
/// `mallard::pmr::pool`, or `mallard::pmr_resource<mallard::pool<>>` (<mallard/pmr.hpp>).
template <source Source = default_heap, pool_options Options = pool_options{}>
class pool {
    using mode = pool_mode<Options.threads>;
    using core = typename mode::template core<Options>;
    static constexpr bool is_shared = Options.threads != sync::none;
    static constexpr slot_shape fixed_shape =
        slot_shape::of(Options.block, Options.align, Options.block_min());

    /// How many bytes a source must have for one block. If the block size or the growth is chosen
    /// at run time, this is the minimum over all such pools.
    static constexpr std::size_t bytes_for_one = [] {
        if (Options.grow.is_at_run_time())
            return std::size_t{0};
        if (Options.block != 0)
            return bytes_at_any_address(core::least_chunk(fixed_shape));
        std::size_t least = bytes_max;
        for (std::size_t bytes = 1; bytes <= Options.chunk; bytes *= 2)
            for (std::size_t more : {std::size_t{0}, bytes / 2}) {
                auto const shape = slot_shape::of(bytes + more, 0, Options.block_min());
                least = std::min(least, bytes_at_any_address(core::least_chunk(shape)));
            }
        return least;
    }();
    static_assert(source_of_bytes<source_bytes<Source>, bytes_for_one>::holds_one);

public:
    constexpr pool() noexcept
        requires(Options.block != 0) && std::default_initializable<Source>
        : core_(fixed_shape, growth_argument<Options.grow>{})
    {
        hold_at_fork();
    }
    /// Makes a pool over `from`. `rule` is the growth rule.
    constexpr explicit pool(Source from, growth_argument<Options.grow> rule = {}) noexcept
        requires(Options.block != 0)
        : source_(std::move(from)), core_(fixed_shape, rule)
    {
        hold_at_fork();
    }

    /// Makes a pool whose block size is chosen at run time. An `align` of 0 stands for the natural
    /// alignment, which is the largest power of two up to 16 that divides `block_bytes`.
    constexpr explicit pool(std::size_t block_bytes, std::size_t align = 0,
                            growth_argument<Options.grow> rule = {}) noexcept
        requires(Options.block == 0) && std::default_initializable<Source>
        : core_(slot_shape::of(block_bytes, align, Options.block_min()), rule)
    {
        hold_at_fork();
    }
    /// Makes a pool over `from`, whose block size is chosen at run time.
    constexpr explicit pool(std::size_t block_bytes, std::size_t align, Source from,
                            growth_argument<Options.grow> rule = {}) noexcept
        requires(Options.block == 0)
        : source_(std::move(from)),
          core_(slot_shape::of(block_bytes, align, Options.block_min()), rule)
    {
        hold_at_fork();
    }

    /// Moves all blocks to this pool. The moved-from pool is empty and usable.
    pool(pool&& other) noexcept
        requires(!is_shared && std::move_constructible<Source>)
        : source_(std::move(other.source_)), core_(std::move(other.core_)),
          large_(std::move(other.large_))
    {
    }
    pool& operator=(pool&& other) noexcept
        requires(!is_shared && std::movable<Source>)
    {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }
    ~pool() { release(); }

    /// Allocates a block, or throws `std::bad_alloc` or what the source throws.
    [[nodiscard]] void* allocate() { return core_.template allocate<true>(source_); }
    /// Allocates a block, or returns null.
    [[nodiscard]] void* try_allocate() noexcept { return core_.template allocate<false>(source_); }
    /// Frees a block of this pool.
    void deallocate(void* block) noexcept { core_.deallocate(source_, block); }

    /// Allocates a block of the pool if `l` fits a block, and otherwise a large block from the
    /// source. Throws `std::bad_alloc`, or what the source throws, if there is no memory.
    [[nodiscard, gnu::always_inline]] void* allocate(layout l) { return allocate_fitting<true>(l); }
    /// Like `allocate(l)`, but returns null if there is no memory.
    [[nodiscard, gnu::always_inline]] void* try_allocate(layout l) noexcept
    {
        return allocate_fitting<false>(l);
    }
    /// Frees a block that was allocated with the layout `l`.
    [[gnu::always_inline]] void deallocate(void* block, layout l) noexcept
    {
        if constexpr (Options.checks == check::on)
            if (fits(l) ? large_.owns(block) : core_.owns(block))
                fatal_wrong_size(block, l.bytes);
        if (fits(l))
            core_.deallocate(source_, block);
        else
            large_.template deallocate<Options.checks == check::on>(source_, block, l.bytes);
    }

    /// Fills `out` with blocks. If this function throws, no block was allocated, but chunks that
    /// were requested for some of the blocks stay in the pool until `trim`.
    void allocate_batch(std::span<void*> out) { core_.template allocate_batch<true>(source_, out); }

    /// Like `allocate_batch`, but returns false instead of throwing.
    [[nodiscard]] bool try_allocate_batch(std::span<void*> out) noexcept
    {
        return core_.template allocate_batch<false>(source_, out);
    }
    /// Frees all of `blocks`, which are blocks of this pool.
    void deallocate_batch(std::span<void* const> blocks) noexcept
    {
        core_.deallocate_batch(source_, blocks);
    }

    /// Returns whether `p` points into a chunk of this pool. O(log chunks).
    [[nodiscard]] bool owns(const void* p) const noexcept
    {
        return core_.owns(p) || large_.owns(p);
    }

    /// Returns whether `p` is a block in use, another address in a chunk, or outside all chunks.
    /// Large blocks are outside. O(log chunks) with `check::on`. Without `check::on`, the recently
    /// freed blocks are searched too.
    [[nodiscard]] validity classify(const void* p) const noexcept { return core_.classify(p); }

    /// Calls `f(void*)` for each block in use, except large blocks, in address order. `f` may free
    /// its argument, but must call no other function of this pool. Otherwise `f` might be called
    /// for a block that is free already. O(blocks).
    template <std::invocable<void*> F>
    void for_each(F f)
    {
        core_.for_each(f);
    }

    /// Frees every block, keeps the chunks, and returns the memory of large blocks to the source.
    /// O(chunks).
    void reset() noexcept
    {
        core_.reset();
        large_.release(source_);
    }

    /// Frees every block and returns all memory to the source. If the source can free all its
    /// memory together, as an arena that the pool owns can, one call releases the source.
    void release() noexcept
    {
        if constexpr (resettable<Source>) {
            forget_blocks<Options.checks == check::on>(core_, large_);
            upstream().release();
        } else {
            core_.release(source_);
            large_.release(source_);
        }
    }

    /// Returns idle memory to the source, except for `keep` bytes. The memory of one request to the
    /// source is returned as a whole, when all its blocks are free. O(free blocks).
    void trim(std::size_t keep = 0) noexcept { core_.trim(source_, keep); }

    /// Returns the statistics. O(chunks + free blocks).
    [[nodiscard]] statistics stats() const noexcept
    {
        statistics s = large_.stats();
        core_.add_to(s);
        return s;
    }

    /// Returns the size of each block.
    constexpr std::size_t block_bytes() const noexcept { return core_.shape().bytes; }
    /// Returns the alignment of each block.
    constexpr std::size_t block_align() const noexcept { return core_.shape().align; }

    /// Returns how many bytes of the source are enough for `count` blocks, as an argument for
    /// `growth::none` and `buffer`. The result includes the header, bitmaps, the array for
    /// `reuse::ordered`, and padding.
    static constexpr std::size_t bytes_for(std::size_t count) noexcept
        requires(Options.block != 0)
    {
        return core::bytes_for(fixed_shape, count);
    }

    /// Whether `owner_of` can be called. This is so with `Options.owned`, unless the growth rule
    /// allows only one chunk request. In that case, the only chunk may have any address, so a mask
    /// does not find its header.
    static constexpr bool knows_owner = Options.owned && core::layout_type::by_mask;

    /// Sets what `owner_of` returns for all blocks. No other thread may be inside a call.
    /// O(chunks).
    constexpr void set_owner(void* owner) noexcept
        requires knows_owner
    {
        core_.set_owner(owner);
    }

    /// Returns the owner of a block in any pool of this type, which costs a mask and a load. Must
    /// not be called for large blocks.
    static void* owner_of(void* block) noexcept
        requires(knows_owner && Options.block != 0)
    {
        static_assert(!Options.grow.is_at_run_time(),
                      "the chunk size must be known: set the limit in the "
                      "type of the pool");
        constexpr typename core::layout_type layout(fixed_shape, Options.grow.limit);
        return layout.place_of(block).c->owner;
    }

    Source& upstream() noexcept { return source_; } ///< the source
    const Source& upstream() const noexcept { return source_; }

private:
    /// Makes a fork acquire all locks of the pool, so that no lock stays locked in the child.
    constexpr void hold_at_fork() noexcept
    {
        if constexpr (Options.threads == sync::thread_cached)
            core_.hold_at_fork(mode::mutex_of(source_), large_.mutex());
    }

    constexpr bool fits(layout l) const noexcept
    {
        if constexpr (Options.block != 0) // folds when the layout is a constant too
            return l.bytes <= fixed_shape.bytes && l.align <= fixed_shape.align;
        else
            return l.bytes <= block_bytes() && l.align <= block_align();
    }

    template <bool Throws>
    [[gnu::always_inline]] void* allocate_fitting(layout l) noexcept(!Throws)
    {
        if (fits(l))
            return core_.template allocate<Throws>(source_);
        if constexpr (Options.threads == sync::thread_cached)
            core_.register_for_fork();
        if constexpr (Options.grow.is_single())
            take_only_chunk();
        return large_.template allocate<Throws>(source_, l.bytes, l.align);
    }

    /// Requests the only chunk of a `growth::none` pool, before a large block can use up the bytes
    /// of the source.
    void take_only_chunk() noexcept
    {
        if (void* const block = core_.template allocate<false>(source_))
            core_.deallocate(source_, block);
    }

    [[no_unique_address]] typename mode::template source_of<Source> source_;
    core core_;
    large_blocks<typename mode::mutex> large_;
};

} // namespace mallard
