// Measures pools that are constructed, filled and destroyed, and pools that begin small and double.
// The suites about blocks that were never allocated before use these functions.
#pragma once

#include <bench/barrier.hpp>
#include <bench/contenders/boost.hpp>
#include <bench/contenders/foonathan.hpp>
#include <bench/entrants.hpp>
#include <bench/measure.hpp>
#include <bench/table.hpp>
#include <bench/warm_heap.hpp>

#include <algorithm>
#include <optional>

namespace mallard::bench {

template <class C>
struct fresh_state {
    fresh_state(effort how, std::size_t count, std::size_t bytes)
        : alone(how.alone), slots(how.count(count)), warm(how, bytes), timed(how)
    {
    }

    /// Runs one round without timing it, because other contenders have changed the state of the
    /// heap since the last round.
    void warm_up(bool written)
    {
        if (alone) // the case is cold, or memory is measured
            return;
        fill(written);
        drop();
    }

    void fill(bool written)
    {
        blocks.emplace(slots.size());
        for (std::size_t i = 0; i < slots.size(); ++i) {
            slots[i] = keep(blocks->allocate());
            if (written)
                touch(slots[i], i);
        }
    }
    // Frees all blocks. A pool frees them in its destructor, and on a heap they are freed one by
    // one.
    void drop()
    {
        for (std::size_t i = 0; !is_pool<C> && i < slots.size(); ++i)
            blocks->deallocate(slots[i]);
        blocks.reset();
    }

    bool alone;
    table<void*> slots;
    warm_heap warm;
    two_phases timed;
    std::optional<C> blocks;
};

// The block count of the case in which a pool grows from 256 blocks to a million, by doubling.
inline constexpr std::size_t growth_count = 1'000'000;
inline constexpr std::size_t growth_bytes = 64;
inline constexpr std::size_t growth_first = 256;

class boost_doubling_pool {
public:
    static std::string name() { return boost_name("pool", ""); }

    explicit boost_doubling_pool(std::size_t) {}

    void* allocate() { return pool_.malloc(); }
    void deallocate(void* block) { pool_.free(block); }

private:
    boost::pool<> pool_{growth_bytes, growth_first};
};

class foonathan_doubling_pool {
    using pool = fm::memory_pool<fm::node_pool>;

public:
    static std::string name() { return foonathan_name("node"); }

    explicit foonathan_doubling_pool(std::size_t) {}

    void* allocate() { return pool_.allocate_node(); }
    void deallocate(void* block) { pool_.deallocate_node(block); }

private:
    pool pool_{growth_bytes, pool::min_block_size(growth_bytes, growth_first)};
};

/// Times single operations by the time-stamp counter, minus the time of a reading.
struct by_ticks {
    static std::uint64_t now() noexcept { return ticks(); }
    static double of_a_reading() { return ticks_of_a_reading(); }
    static double ns_of_one() { return ns_per_tick(); }
};

/// Measures the ns of each of many allocations. Reads the clock once between two allocations.
template <class Clock, class C>
table<double> latencies(fresh_state<C>& s)
{
    table<double> ns(s.slots.size());
    double const reading = Clock::of_a_reading();
    double const ns_of_one = Clock::ns_of_one();
    s.blocks.emplace(s.slots.size());
    for (std::size_t i = 0; i < ns.size(); ++i) {
        std::uint64_t const from = Clock::now();
        void* const block = s.blocks->allocate();
        touch_byte(block, i);
        ns[i] = (static_cast<double>(Clock::now() - from) - reading) * ns_of_one;
        s.slots[i] = block;
    }
    s.drop();
    return ns;
}

/// Returns a percentile, and partitions the values around the percentile.
inline double select_percentile(table<double>& values, double fraction)
{
    auto const count = static_cast<double>(values.size());
    auto* const at = values.begin() + static_cast<std::size_t>(fraction * (count - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

} // namespace mallard::bench
