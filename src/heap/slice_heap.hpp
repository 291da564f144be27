// The slice heap: allocates spans of slices to thread caches and heaps, and returns unused memory
// to the system. One lock protects it.
#pragma once

#include "guests.hpp"
#include "reservation.hpp"

namespace mallard::engine {

/// Neighbouring slices that the slice heap allocates as one unit.
struct span {
    reservation* in = nullptr; ///< null: the allocation failed
    std::size_t slice = 0;
    bool zero = false; ///< all bytes read as zero
    /// The span comes from a span cache. Its record, and the map entries of its later slices, are
    /// still those of a span of this class.
    bool from_cache = false;

    std::byte* start() const noexcept { return in->address_of(slice); }
    slab& record() const noexcept { return in->slabs[slice]; }
};

/// Sums over all reservations, in slices.
struct usage {
    std::size_t used = 0;
    std::size_t used_max = 0;
    std::size_t dirty = 0;     ///< free, and not returned to the system
    std::size_t taken_max = 0; ///< maximum of used + dirty
    std::size_t committed = 0; ///< below the commit limits
    std::size_t purged = 0;    ///< returned to the system, since the start
};

/// Spans of one class that were freed a moment ago, newest first. The next allocation of the class
/// takes the newest of these spans without a search, so the program uses the same pages again. The
/// bits of the reservation show the slices of a cached span as used; `usage` counts them as dirty.
/// An allocation that finds no free slices flushes all span caches and searches again. The end of a
/// decay interval flushes the spans that were not needed in the interval.
struct span_cache {
    slab* first = nullptr;
    std::uint32_t count = 0;
    std::uint32_t least = 0; ///< smallest number of spans in this decay interval
};

/// The slice heap. All public functions take its lock. A caller may hold locks of thread caches and
/// heaps, but no lock that comes later in the lock order (see guests.hpp).
class slice_heap {
public:
    /// Allocates the lowest span that fits. Prefers dirty slices to clean ones, so that freed
    /// memory is used again before the program grows. Fails if the system refuses memory. `align`
    /// is in slices, a power of two. The map entries of the span are 0; the caller writes them.
    span take(std::size_t slices, std::size_t align = 1) noexcept;
    /// Allocates a slab, or a span of a class up to `classed_bytes_max`.
    span take_of_class(std::size_t index) noexcept;

    /// Frees a span and sets its map entries to 0. `purged`: the caller has returned its memory to
    /// the system.
    void give(reservation& in, std::size_t slice, std::size_t slices, bool purged = false) noexcept;
    void give_of_class(reservation& in, std::size_t slice) noexcept;

    /// Extends a span in place by `more` slices. False if the slices after the span are not free.
    bool extend(reservation& in, std::size_t slice, std::size_t slices, std::size_t more,
                bool& zero) noexcept;

    /// Ends a decay interval: returns to the system the slices that were dirty during all of it. At
    /// most 16 MiB are returned at once. False: more is left, so call again soon.
    [[gnu::cold]] bool age() noexcept;
    /// Whether much memory is idle: more than a MiB when memory was last returned or aged.
    bool is_idle() const noexcept { return idle_.load(std::memory_order_relaxed) != idle::no; }
    /// Whether memory is idle and `end_news` was not called since then.
    bool is_newly_idle() const noexcept
    {
        return idle_.load(std::memory_order_relaxed) == idle::newly;
    }
    void end_news() noexcept { idle_.store(idle::known, std::memory_order_relaxed); }
    /// Tells the slice heap whether memory is short. During a shortage the slice heap keeps little
    /// idle memory.
    [[gnu::cold]] void expect_shortage(bool is_short) noexcept;
    /// Returns idle memory to the system, except `keep` bytes. False if there was no idle memory.
    [[gnu::cold]] bool trim(std::size_t keep) noexcept;

    usage now() noexcept;

    /// Whether more slices are in use than the threshold that `expect_growth` has set.
    bool has_grown() const noexcept { return has_grown_.load(std::memory_order_relaxed); }
    /// Sets the threshold of `has_grown`: the slices in use now, plus an eighth, plus 8 MiB.
    [[gnu::cold]] void expect_growth() noexcept;

    // For the fork handlers, which take the lock before a fork, mark it as kept, and open it
    // afterwards: see guests.hpp.
    os::lock& its_lock() noexcept { return lock_; }
    void keep() noexcept { lock_.keep(); }
    [[gnu::cold]] void open() noexcept; ///< requires that no thread is a guest
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
    // The number of slices that may stay dirty beyond the usual maximum. It grows when purged
    // slices are soon needed again.
    std::size_t bonus_ = 0;
    std::size_t purged_lately_ = 0;
    std::size_t expected_ = 0; ///< threshold of `has_grown`, minus `growth_least`
    std::atomic<bool> has_grown_{false};
    std::atomic<idle> idle_{idle::no};
    bool short_ = false;              ///< whether memory is short
    bool refused_ = false;            ///< the system refused a purge in this decay interval
    slab* given_by_guests_ = nullptr; ///< spans to free after the fork
};

extern constinit slice_heap the_slice_heap;

} // namespace mallard::engine
