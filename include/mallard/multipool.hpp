// A multipool: one pool per size class, over one source.
#pragma once

#include <mallard/large.hpp>
#include <mallard/pool_core.hpp>
#include <mallard/size_class.hpp>

#include <array>

namespace mallard {

/// Gives blocks of any size and takes them back one by one, without a header:
/// the size said at `deallocate` picks the pool.
///
///     mallard::multipool<> memory;                   // chunks from the heap
///     mallard::multipool<mallard::arena<>> memory;   // Lakos's Multipool<Monotonic>
///
/// A block is at most 7 bytes, or from 128 up at most 12.5 %, larger than asked
/// for (see `size_class`). What is above `largest()`, or aligned to more than a
/// cache line, comes from the source and goes back to it alone. A class takes
/// nothing before its first block, then 1 KiB, doubling to 64 KiB. A limit in
/// the growth is that of each class; to bound them all, bound the source.
///
/// `deallocate` needs the layout that was asked for. `allocate` throws
/// `std::bad_alloc`, or what the source throws; `try_allocate` gives null. A
/// failed call has changed nothing. One thread at a time.
///
/// `release` is one call to the source where that can take back everything by
/// itself, as an arena that is owned does.
template <source Source = default_heap, multipool_options Options = multipool_options{}>
class multipool {
    static constexpr std::size_t class_count = size_class::of(Options.largest) + 1;
    static constexpr bool watched = Options.checks == check::on;
    using core = pool_core<Options.of_each_pool()>;
    // Beyond it, rare requests would have every chunk of their class aligned as much.
    static constexpr std::size_t align_max = cache_line_bytes;

public:
    constexpr multipool() noexcept
        requires std::default_initializable<Source>
        : pools_(make_pools(std::make_index_sequence<class_count>()))
    {
    }
    constexpr explicit multipool(Source from) noexcept
        : source_(std::move(from)), pools_(make_pools(std::make_index_sequence<class_count>()))
    {
    }

    /// The moved-from multipool is empty and usable.
    multipool(multipool&& other) noexcept
        requires std::move_constructible<Source>
    = default;
    multipool& operator=(multipool&& other) noexcept
        requires std::movable<Source>
    {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }
    ~multipool() { release(); }

    [[nodiscard]] void* allocate(layout l) { return allocate_as<true>(l); }
    [[nodiscard]] void* try_allocate(layout l) noexcept { return allocate_as<false>(l); }

    void deallocate(void* block, layout l) noexcept
    {
        if (is_large(l)) [[unlikely]]
            return large_.template deallocate<watched>(source_, block, l.bytes);
        pools_[size_class::of(l)].deallocate(source_, block);
    }

    /// Whether `p` points into a chunk of this multipool; O(classes * log chunks).
    [[nodiscard]] bool owns(const void* p) const noexcept
    {
        return large_.owns(p) ||
               std::any_of(pools_.begin(), pools_.end(), [p](auto& pool) { return pool.owns(p); });
    }

    /// What `p` is to this multipool, for blocks that are not large.
    [[nodiscard]] validity classify(const void* p) const noexcept
    {
        for (auto const& pool : pools_)
            if (validity const answer = pool.classify(p); answer != validity::miss)
                return answer;
        return validity::miss;
    }

    /// Frees every block and keeps the memory of pooled ones.
    void reset() noexcept
    {
        for (auto& pool : pools_)
            pool.reset();
        large_.release(source_);
    }

    /// Frees every block and gives all memory back to the source.
    void release() noexcept
    {
        if constexpr (resettable<Source>) {
            for (auto& pool : pools_)
                pool.forget();
            large_.forget();
            source_.release();
        } else {
            for (auto& pool : pools_)
                pool.release(source_);
            large_.release(source_);
        }
    }

    /// Gives back what is idle, beyond `keep` bytes in each pool; O(free blocks).
    void trim(std::size_t keep = 0) noexcept
    {
        for (auto& pool : pools_)
            pool.trim(source_, keep);
    }

    [[nodiscard]] statistics stats() const noexcept
    {
        statistics s{.blocks_live = large_.count(),
                     .bytes_live = large_.bytes(),
                     .bytes_taken = large_.bytes()};
        for (auto const& pool : pools_)
            pool.add_to(s);
        return s;
    }

    /// Bytes of the largest block that is pooled.
    static constexpr std::size_t largest() noexcept { return size_class::bytes(class_count - 1); }

    Source& upstream() noexcept { return source_; }
    const Source& upstream() const noexcept { return source_; }

private:
    template <std::size_t... Index>
    static constexpr std::array<core, class_count>
    make_pools(std::index_sequence<Index...>) noexcept
    {
        return {core({size_class::bytes(Index), std::min(size_class::align(Index), align_max)})...};
    }

    static constexpr bool is_large(layout l) noexcept
    {
        // An absurd size rounds up to 0, and is large too.
        return size_class::rounded(l) - 1 >= largest() || l.align > align_max;
    }

    template <bool Throws>
    [[gnu::always_inline]] void* allocate_as(layout l) noexcept(!Throws)
    {
        if (is_large(l)) [[unlikely]]
            return large_.template allocate<Throws>(source_, l.bytes, l.align);
        return pools_[size_class::of(l)].template allocate<Throws>(source_);
    }

    [[no_unique_address]] Source source_{};
    std::array<core, class_count> pools_;
    large_blocks large_;
};

} // namespace mallard
