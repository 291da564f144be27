// Decides when idle memory is returned to the system. Idle memory is returned at the end of each
// decay interval. While malloc holds most of the memory that the control group of the process may
// use, idle memory is returned without delay.
#include "decay.hpp"

#include "limits.hpp"
#include "remote.hpp"
#include "slice_heap.hpp"
#include "threads.hpp"

#include "../os/cgroup.hpp"

#include <algorithm>

namespace mallard::engine {
namespace {

/// The time at which idle memory is returned next, in milliseconds.
constinit std::atomic<std::uint64_t> due{0};
/// The delay before the next call of `age` if one call did not return all memory that is due.
constexpr std::uint64_t pause_milliseconds = decay_interval_milliseconds / 8;

constexpr std::uint64_t credit_per_millisecond = 100;
constexpr std::uint64_t credit_max = 10'000;

/// Memory is short if malloc holds more than this number of bytes.
constinit std::atomic<std::size_t> comfortable_max{~std::size_t{0}};

[[gnu::constructor(101)]] void read_group_limit() noexcept
{
    set_group_limit(os::memory_limit_of_group());
}

} // namespace

void decay_if_due(thread_cache& cache) noexcept
{
    std::uint64_t const now = os::coarse_milliseconds();
    if (the_slice_heap.is_idle())
        start_watch(cache);
    if (now - cache.decayed_at >= decay_interval_milliseconds) {
        cache.decayed_at = now;
        return_all_deferred(cache);
        send_batches(cache);
        shrink_idle(cache);
    }
    std::uint64_t planned = due.load(std::memory_order_relaxed);
    if (now < planned || !due.compare_exchange_strong(planned, now + decay_interval_milliseconds,
                                                      std::memory_order_relaxed))
        return;
    flush_abandoned();
    bool const short_now = memory_is_short();
    the_slice_heap.expect_shortage(short_now);
    if (!the_slice_heap.age())
        due.store(now + pause_milliseconds, std::memory_order_relaxed);
    if (short_now) // return idle memory now, instead of after another decay interval
        the_slice_heap.trim(0);
}

void watch(thread_cache& own) noexcept
{
    std::uint64_t const now = os::coarse_milliseconds();
    std::uint64_t const credit =
        own.watch_credit + (now - own.credited_at) * credit_per_millisecond;
    own.credited_at = now;
    own.watch_credit = static_cast<std::uint32_t>(std::min(credit, credit_max));
    if (own.watch_credit == 0 || (!the_slice_heap.is_idle() && own.allowance[1] == 0))
        return my_caches.replace(watching_thread_cache, own);
    spend_credit(own, 1);
    decay_if_due(own);
}

bool memory_is_short() noexcept
{
    std::size_t const idle = the_slice_heap.now().dirty * slice_bytes;
    return the_limits.held() + idle > comfortable_max.load(std::memory_order_relaxed);
}

void set_group_limit(std::size_t bytes) noexcept
{
    comfortable_max.store(bytes == 0 ? ~std::size_t{0} : bytes / 4 * 3, std::memory_order_relaxed);
}

} // namespace mallard::engine
