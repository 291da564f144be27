// The slice heap. It allocates spans of slices to thread caches and heaps, and returns unused
// memory to the system. One lock protects the slice heap.
#pragma once

#include "guests.hpp"
#include "reservation.hpp"

namespace mallard::engine {

/// Adjacent slices that the slice heap allocates as one unit.
struct span {
    reservation* in = nullptr; ///< null if the allocation failed
    std::size_t slice = 0;
    bool zero = false; ///< whether all bytes are 0
    /// Whether the span comes from a span cache. Such a span still has a span record for its class,
    /// and its slices after the first still have their map entries.
    bool from_cache = false;

    std::byte* start() const noexcept { return in->address_of(slice); }
    slab& record() const noexcept { return in->slabs[slice]; }
};

/// Sums over all reservations, in slices.
struct usage {
    std::size_t used = 0;
    std::size_t used_max = 0;
    std::size_t dirty = 0;     ///< slices that are free, but not returned to the system
    std::size_t taken_max = 0; ///< maximum of used + dirty
    std::size_t committed = 0; ///< slices below the commit limits
    std::size_t purged = 0;    ///< slices returned to the system since the start
};

/// Recently freed spans of one class, newest first. The next allocation of the class reuses the
/// newest span without a search, so the program uses the same pages again. The bits of the
/// reservation show the slices of a cached span as used; `usage` counts them as dirty. An
/// allocation that finds no free slices flushes all span caches and searches again. The end of a
/// decay interval flushes the spans that were not needed in the interval.
struct span_cache {
    slab* first = nullptr;
    std::uint32_t count = 0;
    std::uint32_t least = 0; ///< smallest number of spans in this decay interval
};

/// The slice heap. The functions that allocate, free, purge or count slices lock it. Their caller
/// may hold locks of thread caches and heaps, but no lock that comes later in the lock order (see
/// guests.hpp).
class slice_heap {
public:
    /// Allocates the lowest span that fits. Prefers dirty slices to clean ones, so that freed
    /// memory is used again before the program grows. Fails if the system cannot supply memory.
    /// `align` is a number of slices, and a power of two. The map entries of the span are 0, and
    /// the caller writes them.
    span take(std::size_t slices, std::size_t align = 1) noexcept;
    /// Allocates a slab, or a span of a class up to `classed_bytes_max`.
    span take_of_class(std::size_t index) noexcept;

    /// Frees a span and sets its map entries to 0. `purged` is true if the caller has already
    /// returned the span's memory to the system.
    void give(reservation& in, std::size_t slice, std::size_t slices, bool purged = false) noexcept;
    void give_of_class(reservation& in, std::size_t slice) noexcept;

    /// Extends a span in place by `more` slices. Returns false if the slices after the span are not
    /// free.
    bool extend(reservation& in, std::size_t slice, std::size_t slices, std::size_t more,
                bool& zero) noexcept;

    /// Ends a decay interval. Returns the slices that were dirty during the whole interval to the
    /// system, but only about 16 MiB in each call. Returns false if more slices are left, so that
    /// the caller should call again soon.
    [[gnu::cold]] bool age() noexcept;
    /// Returns whether more than 1 MiB of memory was idle at some time since `age` last found less.
    bool is_idle() const noexcept { return idle_.load(std::memory_order_relaxed) != idle::no; }
    /// Returns whether much memory is idle and no thread has called `end_news` since the memory
    /// became idle.
    bool is_newly_idle() const noexcept
    {
        return idle_.load(std::memory_order_relaxed) == idle::newly;
    }
    void end_news() noexcept { idle_.store(idle::known, std::memory_order_relaxed); }
    /// Records whether memory is short. During a shortage the slice heap retains little idle
    /// memory.
    [[gnu::cold]] void expect_shortage(bool is_short) noexcept;
    /// Returns all idle memory except `keep` bytes to the system. Returns false if there was no
    /// idle memory to return.
    [[gnu::cold]] bool trim(std::size_t keep) noexcept;

    usage now() noexcept;

    /// Returns whether more slices were in use than the threshold that `expect_growth` has set.
    bool has_grown() const noexcept { return has_grown_.load(std::memory_order_relaxed); }
    /// Sets the threshold of `has_grown` to the slices in use now, plus an eighth, plus 8 MiB.
    [[gnu::cold]] void expect_growth() noexcept;

    // The functions below are for the fork handlers (see `guests.hpp`). The handlers lock the slice
    // heap before a fork, mark the lock as held across the fork (`keep`), and unlock the slice heap
    // afterwards (`open`).
    os::lock& its_lock() noexcept { return lock_; }
    void keep() noexcept { lock_.keep(); }
    [[gnu::cold]] void open() noexcept; ///< requires that no thread is in the slow path for forks
    [[gnu::cold]] void forget_guests() noexcept;

private:
    enum class idle : unsigned char { no, newly, known };
    static constexpr std::size_t growth_least = (std::size_t{8} << 20) / slice_bytes;

    span claim(reservation& r, std::size_t slice, std::size_t slices) noexcept;
    bool is_free(reservation& in, std::size_t slice, std::size_t slices) noexcept;
    template <class F>
    span take_lowest(std::size_t reservation::* first, std::size_t slices, std::size_t align,
                     F candidates) noexcept;
    span take_committed(std::size_t slices, std::size_t align) noexcept;
    span take_fresh(std::size_t slices, std::size_t align) noexcept;
    span find(span_cache& at, std::size_t slices, std::size_t align) noexcept;
    [[gnu::cold]] span take_given(std::size_t slices) noexcept;
    [[gnu::cold]] span take_as_guest(std::size_t slices, std::size_t align) noexcept;
    [[gnu::cold]] void give_as_guest(reservation& in, std::size_t slice,
                                     std::size_t slices) noexcept;
    [[gnu::cold]] void add_guests() noexcept;
    void release(reservation& r, std::size_t slice, std::size_t slices, bool dirty) noexcept;
    span take_from(span_cache& at, std::size_t slices, std::size_t align) noexcept;
    void flush_span_caches() noexcept;
    void trim_span_cache(span_cache& at, std::uint32_t count) noexcept;
    void purge_if_due(access& alone) noexcept;
    std::size_t purge_some(access& alone, bool only_aged, std::size_t slices_max) noexcept;
    void purge_span(access& alone, reservation& r, std::size_t slice, std::size_t slices) noexcept;
    std::size_t dirty_max() const noexcept;

    os::lock lock_;
    usage usage_;
    span_cache span_caches_[classed_count] = {};
    std::uint64_t classes_with_spans_ = 0; ///< bit i: span cache i may hold spans
    static_assert(classed_count <= 64);
    // The number of slices that may stay dirty beyond the usual maximum. This number grows when the
    // program needs slices again soon after they were purged.
    std::size_t bonus_ = 0;
    std::size_t purged_lately_ = 0;
    std::size_t expected_ = 0; ///< threshold of `has_grown`, minus `growth_least`
    std::atomic<bool> has_grown_{false};
    std::atomic<idle> idle_{idle::no};
    bool short_ = false;              ///< whether the system is short of memory
    bool refused_ = false;            ///< whether a purge failed in this decay interval
    slab* given_by_guests_ = nullptr; ///< spans to free after the fork
};

extern constinit slice_heap the_slice_heap;

} // namespace mallard::engine
