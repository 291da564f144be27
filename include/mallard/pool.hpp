// A pool: blocks of one size, given and taken back in constant time.
#pragma once

#include <mallard/detail/pool/large.hpp>
#include <mallard/detail/pool/pool_cores.hpp>

namespace mallard {

/// Gives blocks of one size and takes them back one by one.
///
///     mallard::pool<> nodes(sizeof(node));
///     void* block = nodes.allocate();    // throws when the source is dry
///     nodes.deallocate(block);
///
///     mallard::pool<mallard::default_heap, mallard::pool_options{.block = 48}> nodes;
///
/// Takes nothing before the first block. Then chunks of 64 KiB, in steps that
/// double to 1 MiB, are carved lazily: what was never given out has never been
/// touched. Recycled blocks come first, then carved ones, then growth. A block
/// is `block_bytes()` long, the bytes asked for rounded up to a multiple of the
/// alignment, and has no header. Memory beside the blocks: 1/8 byte a block,
/// 104 a chunk, and for `reuse::ordered` 8 for each recently freed block.
///
/// `reuse::ordered` (the default) and `reuse::lifo` differ when frees scatter:
/// see `reuse`. Chunks stay until `trim`, `release` or the end of the pool.
///
/// `allocate` throws `std::bad_alloc`, or what the source throws; `try_` forms
/// give null. A failed call has changed nothing. A block that is not this
/// pool's, or is already free, is a bug in the caller: `check::on` stops the
/// process there, at a cost of O(log chunks) a call and a bit a block.
///
/// One thread at a time, unless `Options.threads` says otherwise (see `sync`):
/// then any thread may call anything at any time, but for `for_each`, `reset`,
/// `release` and the end of the pool, while no other thread is inside a call. Such
/// a pool is neither copied nor moved.
///
/// With a `layout`, what does not fit a block comes from the source instead and
/// goes back to it; so a container may draw its nodes and its table from one
/// pool. The layout decides which, hence must be the same at `deallocate`. The
/// limit of the growth is for single blocks only. A pool of one step
/// (`growth::none`) takes it before anything else from its source.
template <source Source = default_heap, pool_options Options = pool_options{}>
class pool {
    static constexpr bool shared = Options.threads != sync::none;
    static constexpr slot_shape fixed_shape =
        slot_shape::of(Options.block, Options.align, Options.block_min());

public:
    constexpr pool() noexcept
        requires(Options.block != 0) && std::default_initializable<Source>
        : cores_({fixed_shape}, growth_argument<Options.grow>{})
    {
        cores_.hold_at_fork(source_.mutex(), large_.mutex());
    }
    constexpr explicit pool(Source from, growth_argument<Options.grow> rule = {}) noexcept
        requires(Options.block != 0)
        : source_(std::move(from)), cores_({fixed_shape}, rule)
    {
        cores_.hold_at_fork(source_.mutex(), large_.mutex());
    }

    /// An `align` of 0 is the natural one, to 16.
    constexpr explicit pool(std::size_t block_bytes, std::size_t align = 0,
                            growth_argument<Options.grow> rule = {}) noexcept
        requires(Options.block == 0) && std::default_initializable<Source>
        : cores_({slot_shape::of(block_bytes, align, Options.block_min())}, rule)
    {
        cores_.hold_at_fork(source_.mutex(), large_.mutex());
    }
    constexpr explicit pool(std::size_t block_bytes, std::size_t align, Source from,
                            growth_argument<Options.grow> rule = {}) noexcept
        requires(Options.block == 0)
        : source_(std::move(from)),
          cores_({slot_shape::of(block_bytes, align, Options.block_min())}, rule)
    {
        cores_.hold_at_fork(source_.mutex(), large_.mutex());
    }

    /// The moved-from pool is empty and usable.
    pool(pool&& other) noexcept
        requires(!shared && std::move_constructible<Source>)
        : source_(std::move(other.source_)), cores_(std::move(other.cores_)),
          large_(std::move(other.large_))
    {
    }
    pool& operator=(pool&& other) noexcept
        requires(!shared && std::movable<Source>)
    {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }
    ~pool() { release(); }

    [[nodiscard]] void* allocate() { return cores_.template allocate<true>(source_.shared(), 0); }
    [[nodiscard]] void* try_allocate() noexcept
    {
        return cores_.template allocate<false>(source_.shared(), 0);
    }
    void deallocate(void* block) noexcept { cores_.deallocate(source_.shared(), 0, block); }

    [[nodiscard, gnu::always_inline]] void* allocate(layout l) { return allocate_fitting<true>(l); }
    [[nodiscard, gnu::always_inline]] void* try_allocate(layout l) noexcept
    {
        return allocate_fitting<false>(l);
    }
    [[gnu::always_inline]] void deallocate(void* block, layout l) noexcept
    {
        if (fits(l))
            cores_.deallocate(source_.shared(), 0, block);
        else
            large_.template deallocate<Options.checks == check::on>(source_.shared(), block,
                                                                    l.bytes);
    }

    /// Fills `out` with blocks, or throws and has allocated none, as below.
    void allocate_batch(std::span<void*> out)
    {
        cores_.template allocate_batch<true>(source_.shared(), 0, out);
    }

    /// True: `out` is full. False: no block was allocated; the memory that was
    /// taken for some stays, idle, until `trim`.
    [[nodiscard]] bool try_allocate_batch(std::span<void*> out) noexcept
    {
        return cores_.template allocate_batch<false>(source_.shared(), 0, out);
    }
    void deallocate_batch(std::span<void* const> blocks) noexcept
    {
        cores_.deallocate_batch(source_.shared(), 0, blocks);
    }

    /// Whether `p` points into a chunk of this pool; O(log chunks).
    [[nodiscard]] bool owns(const void* p) const noexcept
    {
        return cores_.owns(p) || large_.owns(p);
    }

    /// What `p` is to this pool, for single blocks; O(log chunks) under
    /// `check::on`, else plus a search of the front.
    [[nodiscard]] validity classify(const void* p) const noexcept { return cores_.classify(p); }

    /// Calls `f(void*)` for each single block in use, in address order. `f` may free the
    /// block that it is given, but must call no other function of this pool: if `f` freed another
    /// block, that block could still be visited. O(blocks).
    template <std::invocable<void*> F>
    void for_each(F f)
    {
        cores_.for_each(f);
    }

    /// Frees every block and keeps the memory of single ones; O(chunks).
    void reset() noexcept
    {
        cores_.reset();
        large_.release(source_.shared());
    }

    /// Frees every block and gives all memory back to the source: one call where
    /// that can take back everything by itself, as an arena that is owned does.
    void release() noexcept
    {
        if constexpr (resettable<Source>) {
            cores_.forget();
            large_.forget();
            source_.bare().release();
        } else {
            cores_.release(source_.shared());
            large_.release(source_.shared());
        }
    }

    /// Gives back what is idle, beyond `keep` bytes; O(free blocks). The unit is
    /// what one growth step took, idle when no block of it is in use.
    void trim(std::size_t keep = 0) noexcept { cores_.trim(source_.shared(), keep); }

    /// Walks chunks and free blocks.
    [[nodiscard]] statistics stats() const noexcept
    {
        statistics s = large_.stats();
        cores_.add_to(s);
        return s;
    }

    constexpr std::size_t block_bytes() const noexcept { return cores_.shape(0).bytes; }
    constexpr std::size_t block_align() const noexcept { return cores_.shape(0).align; }

    /// Source bytes that surely hold `count` blocks, for `growth::none` and
    /// `buffer`: header, bits, the array of `ordered` and padding included.
    static constexpr std::size_t bytes_for(std::size_t count) noexcept
        requires(Options.block != 0)
    {
        return pool_cores<Options, 1>::bytes_for(fixed_shape, count);
    }

    /// With `Options.owned`, whether blocks lead to an owner: not so where the growth
    /// has one step, whose chunk may stand anywhere.
    static constexpr bool knows_owner = Options.owned && pool_cores<Options, 1>::geometry::gridded;

    /// What `owner_of` says of all blocks from now on; O(chunks). While no other
    /// thread is inside a call.
    constexpr void lead_to(void* owner) noexcept
        requires knows_owner
    {
        cores_.lead_to(owner);
    }

    /// The owner of a single block of any pool of this type: a mask and a load.
    static void* owner_of(void* block) noexcept
        requires(knows_owner && Options.block != 0)
    {
        static_assert(!Options.grow.is_at_run_time(), "chunks are as large as the limit in the "
                                                      "type of the pool says");
        constexpr typename pool_cores<Options, 1>::geometry cut(fixed_shape, Options.grow.limit);
        return cut.place_of(block).c->owner;
    }

    Source& upstream() noexcept { return source_.bare(); }
    const Source& upstream() const noexcept { return source_.bare(); }

private:
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
            return cores_.template allocate<Throws>(source_.shared(), 0);
        cores_.enlist();
        if constexpr (Options.grow.is_single())
            take_only_chunk();
        return large_.template allocate<Throws>(source_.shared(), l.bytes, l.align);
    }

    /// Takes the only step of a `growth::none` pool now, before a large block can take its bytes.
    void take_only_chunk() noexcept
    {
        if (void* const block = cores_.template allocate<false>(source_.shared(), 0))
            cores_.deallocate(source_.shared(), 0, block);
    }

    [[no_unique_address]] source_holder<Source, Options.threads> source_;
    pool_cores<Options, 1> cores_;
    large_blocks<mutex_if<shared>> large_;
};

template <std::size_t Block, std::size_t Count, reuse Order, check Checks>
struct fixed_pool_of {
    static constexpr pool_options shape{.block = Block, .order = Order, .checks = Checks};
    static constexpr std::size_t bytes = pool<null, shape>::bytes_for(Count);
    static constexpr pool_options options{
        .block = Block, .grow = growth::none(bytes), .order = Order, .checks = Checks};
    using type = pool<buffer<bytes>, options>;
};

/// Room for `Count` blocks of `Block` bytes inside the object itself, and no heap
/// at all; ready at compile time as a static. Where alignment leaves a gap, one
/// block more may fit. A layout that does not fit a block is refused, so all of the room is for
/// blocks.
///
///     constinit mallard::fixed_pool<48, 100> timers;
template <std::size_t Block, std::size_t Count, reuse Order = reuse::lifo,
          check Checks = check::off>
using fixed_pool = typename fixed_pool_of<Block, Count, Order, Checks>::type;

} // namespace mallard
