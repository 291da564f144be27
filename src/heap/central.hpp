// Who has which granules: one lock, over bits in all windows.
#pragma once

#include "fork.hpp"
#include "slab_map.hpp"

namespace mallard::engine {

/// A run of granules from the lowest place that fits, used ones before fresh ones:
/// what was freed first serves everybody before the program grows.
struct run {
    window* in = nullptr; ///< null: refused
    std::size_t granule = 0;
    bool zero = false;
    bool again = false; ///< the record and the later entries are as the class needs them

    std::byte* start() const noexcept { return in->address_of(granule); }
    slab& record() const noexcept { return in->slabs[granule]; }
};

/// Bytes of the engine's own, in granules.
struct usage {
    std::size_t used = 0;
    std::size_t used_max = 0;
    std::size_t dirty = 0;     ///< free, and not given back to the system
    std::size_t committed = 0; ///< up to the frontiers
    std::size_t purged = 0;    ///< in all
};

/// What was given back of a class a moment ago, newest first: taken again without a search,
/// and for what it was, so that the same pages are touched. In the bits it still counts as
/// used, in `usage` as dirty. Whoever does not find what he looks for puts all of it where it
/// belongs, and looks again; an epoch puts there what nobody has wanted in it.
struct shelf {
    slab* first = nullptr;
    std::uint32_t count = 0;
    std::uint32_t least = 0; ///< there were in this epoch
};

/// All members take the lock. Callers may hold the locks of fronts and heaps, but no others.
class central {
public:
    /// Null: the system refuses. `align` in granules, a power of two. The entries of the
    /// run stay 0: the caller marks them.
    run take(std::size_t granules, std::size_t align = 1) noexcept;
    /// Takes a slab, or a run of a class whose size is at most `classed_bytes_max`.
    run take_of_class(std::size_t index) noexcept;

    /// Nothing of the run is used any more; its entries become 0 here.
    /// `purged`: the memory of the run has gone back to the system already.
    void give(window& in, std::size_t granule, std::size_t granules, bool purged = false) noexcept;
    void give_of_class(window& in, std::size_t granule) noexcept;

    /// Those after a run, if they are free: it grows where it is.
    bool extend(window& in, std::size_t granule, std::size_t granules, std::size_t more,
                bool& zero) noexcept;

    /// An epoch has passed: what has been free since the last goes back to the system.
    [[gnu::cold]] void age() noexcept;
    /// Memory is short: little may lie idle from now on. Or it is not any more.
    [[gnu::cold]] void expect_shortage(bool is_short) noexcept;
    /// All that is free goes back, but `keep` bytes. Whether there was anything.
    [[gnu::cold]] bool trim(std::size_t keep) noexcept;

    usage now() noexcept;

    /// Whether more granules are in use than `expect_growth` allowed for.
    bool has_grown() const noexcept { return has_grown_.load(std::memory_order_relaxed); }
    /// Sets what `has_grown` compares with: the granules in use now, and some growth on top.
    [[gnu::cold]] void expect_growth() noexcept;

    // Around a fork the lock is first taken, then kept, then opened: see fork.hpp.
    os::lock& its_lock() noexcept { return lock_; }
    void keep() noexcept;
    void open() noexcept; ///< when there is no guest
    void forget_guests() noexcept;

private:
    static constexpr std::size_t growth_least = (std::size_t{8} << 20) / granule_bytes;

    run claim(window& w, std::size_t granule, std::size_t granules) noexcept;
    bool is_free(window& in, std::size_t granule, std::size_t granules) noexcept;
    template <class F>
    run take_lowest(std::size_t window::* first, std::size_t granules, std::size_t align,
                    F candidates) noexcept;
    run take_below_frontiers(std::size_t granules, std::size_t align) noexcept;
    run take_fresh(std::size_t granules, std::size_t align) noexcept;
    run find(shelf& at, std::size_t granules, std::size_t align) noexcept;
    run take_as_guest(std::size_t granules, std::size_t align) noexcept;
    void give_as_guest(window& in, std::size_t granule, std::size_t granules) noexcept;
    void count_guests() noexcept;
    void release(window& w, std::size_t granule, std::size_t granules, bool dirty) noexcept;
    run take_from(shelf& at, std::size_t granules, std::size_t align) noexcept;
    void clear_shelves() noexcept;
    void keep_on_shelf(shelf& at, std::uint32_t count) noexcept;
    void purge_if_due(access& alone) noexcept;
    std::size_t purge_some(access& alone, bool only_aged, std::size_t granules_max) noexcept;
    void purge_run(access& alone, window& w, std::size_t granule, std::size_t granules) noexcept;
    std::size_t dirty_max() const noexcept;

    os::lock lock_;
    usage usage_;
    shelf shelves_[classed_count] = {};
    std::uint64_t shelved_ = 0; // bit i: there may be some on shelf i
    static_assert(classed_count <= 64);
    // What was purged and wanted again at once earns more room for dirty granules.
    std::size_t bonus_ = 0;
    std::size_t purged_lately_ = 0;
    std::size_t expected_ = 0; ///< granules in use, and `growth_least` more
    std::atomic<bool> has_grown_{false};
    bool short_ = false;
    bool refused_ = false;            ///< a purge failed in this epoch: memory is locked
    slab* given_by_guests_ = nullptr; ///< runs to free after the fork
};

extern constinit central the_central;

} // namespace mallard::engine
