// What becomes of memory that nobody has wanted for a decay interval.
#include "decay.hpp"

#include "pressure.hpp"
#include "remote.hpp"
#include "slice_heap.hpp"
#include "threads.hpp"

namespace mallard::engine {
namespace {

constinit std::atomic<std::uint64_t> aged_last{0};

} // namespace

void decay_if_due(thread_cache& cache) noexcept
{
    std::uint64_t const now = os::coarse_milliseconds();
    if (now - cache.decayed_at < decay_interval_milliseconds)
        return;
    cache.decayed_at = now;
    return_all_deferred(cache);
    send_batches(cache);
    shrink_idle(cache);
    std::uint64_t last = aged_last.load(std::memory_order_relaxed);
    if (now - last < decay_interval_milliseconds ||
        !aged_last.compare_exchange_strong(last, now, std::memory_order_relaxed))
        return;
    empty_abandoned();
    bool const is_short = memory_is_short(now);
    the_slice_heap.expect_shortage(is_short);
    the_slice_heap.age();
    if (is_short) // what is idle does not wait for its second decay interval
        the_slice_heap.trim(0);
}

} // namespace mallard::engine
