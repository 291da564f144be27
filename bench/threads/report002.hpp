// The timed operations of the thread-policy report (report 002). Several suites repeat that
// benchmark.
#pragma once

#include <bench/bulk.hpp>
#include <bench/contenders/threads.hpp>
#include <bench/entrants.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace mallard::bench {

/// Makes a pool with many free blocks, as the report does, so that its pages are resident.
template <class C>
std::unique_ptr<C> filled(table<void*>& slots)
{
    std::unique_ptr<C> blocks = make_shared_by<C>(1, slots.size());
    if (is_pool<C>)
        build_free_list(*blocks, slots);
    return blocks;
}

/// Starts threads that spin on a flag, then sets the flag. Each thread does `count` pairs. The
/// clock stops when the last thread was joined. Writes the ns of a pair: wall time / pairs of all
/// threads.
template <class C>
void concurrent_round(std::size_t count, std::size_t threads, table<void*>& slots,
                      std::span<double> out)
{
    std::unique_ptr<C> const blocks = filled<C>(slots);
    std::atomic<bool> go = false;
    std::vector<std::thread> all;
    for (std::size_t i = 0; i < threads; ++i) {
        all.emplace_back([&] {
            while (!go.load(std::memory_order_acquire)) {}
            interleave(*blocks, count);
        });
    }
    double const from = wall_ns();
    go.store(true, std::memory_order_release);
    for (std::thread& t : all)
        t.join();
    out[0] = (wall_ns() - from) / static_cast<double>(count * threads);
}

} // namespace mallard::bench
