// A multipool, which has one pool for each size class, over one source.
#pragma once

#include <mallard/detail/pool/large_blocks.hpp>
#include <mallard/detail/pool/lazy_cores.hpp>

namespace mallard {

/// Options of `multipool`.
///
///     mallard::multipool<mallard::default_heap, mallard::multipool_options{.largest = 4096}>
///     memory;
struct multipool_options {
    std::size_t largest = 32768; ///< size in bytes of the largest block that comes from a pool
    /// This member and those below mean the same as in `pool_options`, for each pool.
    std::size_t chunk = std::size_t{1} << 16;
    /// The sizes of the first and the largest chunk request of each pool.
    growth grow{.first = 2048, .max = std::size_t{1} << 20, .num = 4};
    sync threads = sync::none; ///< needs <mallard/sync.hpp> if it is not `none`
    reuse order = reuse::lifo; ///< which free block a pool allocates next
    /// Maximum total bytes of the free blocks in one magazine (array of pointers to free blocks).
    /// Each thread cache has a magazine for each size class. Without thread caches, each ordered
    /// pool has one.
    std::size_t cached_bytes = std::size_t{1} << 18;
    check checks = check::off; ///< verify calls, and mark free blocks for Valgrind

    /// Returns whether all pools share a few slabs for their first blocks. They do not if the
    /// growth rule was changed. They do not with `reuse::ordered` or `check::on` either, because
    /// both options need each block in a chunk of its size class.
    constexpr bool has_slabs() const noexcept
    {
        return grow == multipool_options{}.grow && order != reuse::ordered && checks == check::off;
    }
    /// Returns the options of each pool of the multipool.
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

/// Allocates blocks of any size and frees them one by one. Blocks have no header, because the size
/// given to `deallocate` selects the pool.
///
///     mallard::multipool<> memory;                   // chunks from the heap
///     mallard::multipool<mallard::arena<>> memory;   // Lakos's Multipool<Monotonic>
///
/// A block of up to 128 bytes is at most 7 bytes larger than requested, and any other pooled block
/// at most 12.5 % larger (see `size_class`). A block above `largest()`, or aligned to more than a
/// cache line, is a large block. It comes directly from the source, and a free returns it to the
/// source. The first blocks of all sizes are cut from shared slabs of 1, 4, 16, 64 and 256 KiB.
/// When the slabs are used up, each size class requests separate chunks. The first chunk request
/// has 2 KiB, and each later one is four times as large, up to 1 MiB. With `check::on`,
/// `reuse::ordered` or another growth rule in `Options`, there are no slabs. A limit in the growth
/// rule applies to each size separately. To limit all sizes together, wrap the source in `limited`.
///
/// Pass the requested layout to `deallocate`. `allocate` throws `std::bad_alloc`, or what the
/// source throws; `try_allocate` returns null. A failed call changes nothing. Only one thread at a
/// time may use a multipool, unless `Options.threads` allows more (see `pool`).
///
/// Containers of `std::pmr` find no matching constructor for a `multipool*`. For them, write
/// `mallard::pmr::multipool`, or `mallard::pmr_resource<mallard::multipool<>>` (<mallard/pmr.hpp>).
template <source Source = default_heap, multipool_options Options = multipool_options{}>
class multipool {
    static constexpr std::size_t class_count = size_class::of(Options.largest) + 1;
    using mode = pool_mode<Options.threads>;
    using cores =
        typename mode::template cores<Options.of_each_pool(), class_count, Options.has_slabs()>;
    static constexpr bool is_shared = Options.threads != sync::none;
    static constexpr std::size_t align_max = cache_line_bytes;
    static_assert(Options.grow.is_at_run_time() ||
                  source_of_bytes<source_bytes<Source>,
                                  cores::bytes_for_one(class_shapes<class_count>[0])>::holds_one);

public:
    constexpr multipool() noexcept
        requires std::default_initializable<Source>
        : cores_(class_shapes<class_count>, growth_argument<Options.grow>{})
    {
        hold_at_fork();
    }
    /// Makes a multipool over `from`. `rule` is the growth rule of each pool.
    constexpr explicit multipool(Source from, growth_argument<Options.grow> rule = {}) noexcept
        : source_(std::move(from)), cores_(class_shapes<class_count>, rule)
    {
        hold_at_fork();
    }

    /// Moves the pools. The moved-from multipool is empty and usable.
    multipool(multipool&& other) noexcept
        requires(!is_shared && std::move_constructible<Source>)
    = default;
    multipool& operator=(multipool&& other) noexcept
        requires(!is_shared && std::movable<Source>)
    {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }
    ~multipool() { release(); }

    /// Allocates a block, or throws `std::bad_alloc` or what the source throws.
    [[nodiscard, gnu::always_inline]] void* allocate(layout l) { return allocate_as<true>(l); }
    /// Allocates a block, or returns null.
    [[nodiscard, gnu::always_inline]] void* try_allocate(layout l) noexcept
    {
        return allocate_as<false>(l);
    }

    /// Frees a block. `l` is the layout with which the block was allocated. `block` must not be
    /// null.
    [[gnu::always_inline]] void deallocate(void* block, layout l) noexcept
    {
        if constexpr (Options.checks == check::on)
            check_size(block, l);
        if (is_large(l)) [[unlikely]]
            return large_.template deallocate < Options.checks ==
                   check::on > (source_, block, l.bytes);
        cores_.deallocate(source_, block, size_class::of(l));
    }

    /// Returns whether `p` points into a chunk of this multipool. O(classes * log chunks).
    [[nodiscard]] bool owns(const void* p) const noexcept
    {
        return large_.owns(p) || cores_.owns(p);
    }

    /// Returns whether `p` is a block in use, another address in a chunk, or outside all chunks.
    /// Large blocks are outside.
    [[nodiscard]] validity classify(const void* p) const noexcept { return cores_.classify(p); }

    /// Frees every block and keeps the memory of the pools.
    void reset() noexcept
    {
        cores_.reset();
        large_.release(source_);
    }

    /// Frees every block and returns all memory to the source. If the source can free all its
    /// memory together, as an arena that the multipool owns can, one call releases the source.
    void release() noexcept
    {
        if constexpr (resettable<Source>) {
            forget_blocks<Options.checks == check::on>(cores_, large_);
            upstream().release();
        } else {
            cores_.release(source_);
            large_.release(source_);
        }
    }

    /// Returns idle memory to the source, except for `keep` bytes in each pool. O(free blocks).
    void trim(std::size_t keep = 0) noexcept { cores_.trim(source_, keep); }

    /// Returns the sum of the statistics of all pools and large blocks.
    [[nodiscard]] statistics stats() const noexcept
    {
        statistics s = large_.stats();
        cores_.add_to(s);
        return s;
    }

    /// Returns the size of the largest block that comes from a pool.
    static constexpr std::size_t largest() noexcept { return size_class::bytes(class_count - 1); }

    Source& upstream() noexcept { return source_; } ///< the source
    const Source& upstream() const noexcept { return source_; }

private:
    /// Stops the process if the block belongs to this multipool, but not to the size class of `l`.
    [[gnu::noinline]] void check_size(const void* block, layout l) const noexcept
    {
        bool const is_there =
            is_large(l) ? large_.owns(block) : cores_.owns(block, size_class::of(l));
        if (!is_there && owns(block))
            fatal_wrong_size(block, l.bytes);
    }

    /// Makes a fork acquire all locks of the multipool, so that no lock stays locked in the child.
    constexpr void hold_at_fork() noexcept
    {
        if constexpr (Options.threads == sync::thread_cached)
            cores_.hold_at_fork(mode::mutex_of(source_), large_.mutex());
    }

    static constexpr bool is_large(layout l) noexcept
    {
        // A size near the end of the address space wraps to 0 when it is rounded up. The
        // subtraction turns that 0 into the largest number.
        return size_class::rounded(l) - 1 >= largest() || l.align > align_max;
    }

    template <bool Throws>
    [[gnu::always_inline]] void* allocate_as(layout l) noexcept(!Throws)
    {
        if (is_large(l)) [[unlikely]] {
            if constexpr (Options.threads == sync::thread_cached)
                cores_.register_for_fork();
            return large_.template allocate<Throws>(source_, l.bytes, l.align);
        }
        return cores_.template allocate<Throws>(source_, size_class::of(l));
    }

    [[no_unique_address]] typename mode::template source_of<Source> source_;
    cores cores_;
    large_blocks<typename mode::mutex> large_;
};

} // namespace mallard
