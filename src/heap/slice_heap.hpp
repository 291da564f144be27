// Who has which slices: one lock, over bits in all reservations.
#pragma once

#include "fork.hpp"
#include "slab_map.hpp"

namespace mallard::engine {

/// A span of slices from the lowest place that fits, used ones before fresh ones:
/// what was freed first serves everybody before the program grows.
struct span {
    reservation* in = nullptr; ///< null: refused
    std::size_t slice = 0;
    bool zero = false;
    bool again = false; ///< the record and the later entries are as the class needs them

    std::byte* start() const noexcept { return in->address_of(slice); }
    slab& record() const noexcept { return in->slabs[slice]; }
};

/// Bytes of the engine's own, in slices.
struct usage {
    std::size_t used = 0;
    std::size_t used_max = 0;
    std::size_t dirty = 0;     ///< free, and not given back to the system
    std::size_t committed = 0; ///< up to the commit limits
    std::size_t purged = 0;    ///< in all
};

/// What was given back of a class a moment ago, newest first: taken again without a search,
/// and for what it was, so that the same pages are touched. In the bits it still counts as
/// used, in `usage` as dirty. Whoever does not find what he looks for puts all of it where it
/// belongs, and looks again; a decay interval puts there what nobody has wanted in it.
struct span_cache {
    slab* first = nullptr;
    std::uint32_t count = 0;
    std::uint32_t least = 0; ///< there were in this decay interval
};

/// All members take the lock. Callers may hold the locks of thread caches and heaps, but no others.
class slice_heap {
public:
    /// Null: the system refuses. `align` in slices, a power of two. The entries of the
    /// run stay 0: the caller marks them.
    span take(std::size_t slices, std::size_t align = 1) noexcept;
    /// Takes a slab, or a span of a class whose size is at most `classed_bytes_max`.
    span take_of_class(std::size_t index) noexcept;

    /// Nothing of the span is used any more; its entries become 0 here.
    /// `purged`: the memory of the span has gone back to the system already.
    void give(reservation& in, std::size_t slice, std::size_t slices, bool purged = false) noexcept;
    void give_of_class(reservation& in, std::size_t slice) noexcept;

    /// Those after a span, if they are free: it grows where it is.
    bool extend(reservation& in, std::size_t slice, std::size_t slices, std::size_t more,
                bool& zero) noexcept;

    /// A decay interval has passed: what has been free since the last goes back to the system.
    [[gnu::cold]] void age() noexcept;
    /// Memory is short: little may lie idle from now on. Or it is not any more.
    [[gnu::cold]] void expect_shortage(bool is_short) noexcept;
    /// All that is free goes back, but `keep` bytes. Whether there was anything.
    [[gnu::cold]] bool trim(std::size_t keep) noexcept;

    usage now() noexcept;

    /// Whether more slices are in use than `expect_growth` allowed for.
    bool has_grown() const noexcept { return has_grown_.load(std::memory_order_relaxed); }
    /// Sets what `has_grown` compares with: the slices in use now, and some growth on top.
    [[gnu::cold]] void expect_growth() noexcept;

    // Around a fork the lock is first taken, then kept, then opened: see fork.hpp.
    os::lock& its_lock() noexcept { return lock_; }
    void keep() noexcept;
    void open() noexcept; ///< when there is no guest
    void forget_guests() noexcept;

private:
    static constexpr std::size_t growth_least = (std::size_t{8} << 20) / slice_bytes;

    span claim(reservation& w, std::size_t slice, std::size_t slices) noexcept;
    bool is_free(reservation& in, std::size_t slice, std::size_t slices) noexcept;
    template <class F>
    span take_lowest(std::size_t reservation::* first, std::size_t slices, std::size_t align,
                     F candidates) noexcept;
    span take_below_commit_limits(std::size_t slices, std::size_t align) noexcept;
    span take_fresh(std::size_t slices, std::size_t align) noexcept;
    span find(span_cache& at, std::size_t slices, std::size_t align) noexcept;
    span take_as_guest(std::size_t slices, std::size_t align) noexcept;
    void give_as_guest(reservation& in, std::size_t slice, std::size_t slices) noexcept;
    void count_guests() noexcept;
    void release(reservation& w, std::size_t slice, std::size_t slices, bool dirty) noexcept;
    span take_from(span_cache& at, std::size_t slices, std::size_t align) noexcept;
    void flush_span_caches() noexcept;
    void trim_span_cache(span_cache& at, std::uint32_t count) noexcept;
    void purge_if_due(access& alone) noexcept;
    std::size_t purge_some(access& alone, bool only_aged, std::size_t slices_max) noexcept;
    void purge_span(access& alone, reservation& w, std::size_t slice, std::size_t slices) noexcept;
    std::size_t dirty_max() const noexcept;

    os::lock lock_;
    usage usage_;
    span_cache span_caches_[classed_count] = {};
    std::uint64_t classes_with_spans_ = 0; // bit i: there may be some on span cache i
    static_assert(classed_count <= 64);
    // What was purged and wanted again at once earns more room for dirty slices.
    std::size_t bonus_ = 0;
    std::size_t purged_lately_ = 0;
    std::size_t expected_ = 0; ///< slices in use, and `growth_least` more
    std::atomic<bool> has_grown_{false};
    bool short_ = false;
    bool refused_ = false;            ///< a purge failed in this decay interval: memory is locked
    slab* given_by_guests_ = nullptr; ///< spans to free after the fork
};

extern constinit slice_heap the_slice_heap;

} // namespace mallard::engine
