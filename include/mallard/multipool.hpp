// A multipool: one pool per size class, over one source.
#pragma once

#include <mallard/detail/base/size_class.hpp>
#include <mallard/detail/pool/large.hpp>
#include <mallard/detail/pool/pool_cores.hpp>

namespace mallard {

/// Gives blocks of any size and takes them back one by one, without a header:
/// the size said at `deallocate` picks the pool.
///
///     mallard::multipool<> memory;                   // chunks from the heap
///     mallard::multipool<mallard::arena<>> memory;   // Lakos's Multipool<Monotonic>
///
/// A block is at most 7 bytes, or from 128 up at most 12.5 %, larger than asked
/// for (see `size_class`). What is above `largest()`, or aligned to more than a
/// cache line, comes from the source and goes back to it alone. The first blocks
/// of all sizes are cut from pieces of 1 KiB to 256 KiB that they share, by four;
/// then a class that needs more takes 2 KiB, by four to 1 MiB. With a growth
/// in `Options` other than the usual there are no pieces. A limit in the growth is that of each
/// class; to bound them all, bound the source.
///
/// `deallocate` needs the layout that was asked for. `allocate` throws
/// `std::bad_alloc`, or what the source throws; `try_allocate` gives null. A
/// failed call has changed nothing. One thread at a time, or as `Options.threads`
/// says, like a pool.
///
/// `release` is one call to the source where that can take back everything by
/// itself, as an arena that is owned does.
template <source Source = default_heap, multipool_options Options = multipool_options{}>
class multipool {
    static constexpr std::size_t class_count = size_class::of(Options.largest) + 1;
    static constexpr bool watched = Options.checks == check::on;
    static constexpr bool shared = Options.threads != sync::none;
    // Beyond it, rare requests would have every chunk of their class aligned as much.
    static constexpr std::size_t align_max = cache_line_bytes;
    static constexpr auto shapes = [] {
        std::array<slot_shape, class_count> all{};
        for (std::size_t i = 0; i < class_count; ++i)
            all[i] = {size_class::bytes(i), std::min(size_class::align(i), align_max)};
        return all;
    }();

public:
    constexpr multipool() noexcept
        requires std::default_initializable<Source>
        : cores_(shapes, growth_argument<Options.grow>{})
    {
        cores_.hold_at_fork(source_.mutex(), large_.mutex());
    }
    constexpr explicit multipool(Source from, growth_argument<Options.grow> rule = {}) noexcept
        : source_(std::move(from)), cores_(shapes, rule)
    {
        cores_.hold_at_fork(source_.mutex(), large_.mutex());
    }

    /// The moved-from multipool is empty and usable.
    multipool(multipool&& other) noexcept
        requires(!shared && std::move_constructible<Source>)
    = default;
    multipool& operator=(multipool&& other) noexcept
        requires(!shared && std::movable<Source>)
    {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }
    ~multipool() { release(); }

    [[nodiscard, gnu::always_inline]] void* allocate(layout l) { return allocate_as<true>(l); }
    [[nodiscard, gnu::always_inline]] void* try_allocate(layout l) noexcept
    {
        return allocate_as<false>(l);
    }

    [[gnu::always_inline]] void deallocate(void* block, layout l) noexcept
    {
        if (is_large(l)) [[unlikely]]
            return large_.template deallocate<watched>(source_.shared(), block, l.bytes);
        cores_.deallocate(source_.shared(), size_class::of(l), block);
    }

    /// Whether `p` points into a chunk of this multipool; O(classes * log chunks).
    [[nodiscard]] bool owns(const void* p) const noexcept
    {
        return large_.owns(p) || cores_.owns(p);
    }

    /// What `p` is to this multipool, for blocks that are not large.
    [[nodiscard]] validity classify(const void* p) const noexcept { return cores_.classify(p); }

    /// Frees every block and keeps the memory of pooled ones.
    void reset() noexcept
    {
        cores_.reset();
        large_.release(source_.shared());
    }

    /// Frees every block and gives all memory back to the source.
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

    /// Gives back what is idle, beyond `keep` bytes in each pool; O(free blocks).
    void trim(std::size_t keep = 0) noexcept { cores_.trim(source_.shared(), keep); }

    [[nodiscard]] statistics stats() const noexcept
    {
        statistics s = large_.stats();
        cores_.add_to(s);
        return s;
    }

    /// Bytes of the largest block that is pooled.
    static constexpr std::size_t largest() noexcept { return size_class::bytes(class_count - 1); }

    Source& upstream() noexcept { return source_.bare(); }
    const Source& upstream() const noexcept { return source_.bare(); }

private:
    static constexpr bool is_large(layout l) noexcept
    {
        // An absurd size rounds up to 0, and is large too.
        return size_class::rounded(l) - 1 >= largest() || l.align > align_max;
    }

    template <bool Throws>
    [[gnu::always_inline]] void* allocate_as(layout l) noexcept(!Throws)
    {
        if (is_large(l)) [[unlikely]] {
            cores_.enlist();
            return large_.template allocate<Throws>(source_.shared(), l.bytes, l.align);
        }
        return cores_.template allocate<Throws>(source_.shared(), size_class::of(l));
    }

    [[no_unique_address]] source_holder<Source, Options.threads> source_;
    pool_cores<Options.of_each_pool(), class_count> cores_;
    large_blocks<mutex_if<shared>> large_;
};

} // namespace mallard
