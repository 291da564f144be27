// Decides when idle memory is returned to the system: at the end of each decay interval, and at
// once while the control group of the process is nearly full.
#include "decay.hpp"

#include "remote.hpp"
#include "slice_heap.hpp"
#include "threads.hpp"

namespace mallard::engine {
namespace {

constexpr std::uint64_t look_milliseconds = 1000;

constinit std::atomic<std::uint64_t> aged_last{0};

constinit std::atomic<std::uint64_t> looked_last{0};
/// True while a thread reads the files of the control group. Until that thread is done, other
/// threads use the previous result, `is_short`.
constinit std::atomic<bool> looking{false};
constinit std::atomic<bool> is_short{false};

// The variables below are used only by the thread that has set `looking`.
constinit os::cgroup group;
constinit bool group_is_known = false;

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
    flush_abandoned();
    bool const short_now = memory_is_short(now);
    the_slice_heap.expect_shortage(short_now);
    the_slice_heap.age();
    if (short_now) // return idle memory now, instead of after another decay interval
        the_slice_heap.trim(0);
}

bool memory_is_short(std::uint64_t now) noexcept
{
    std::uint64_t last = looked_last.load(std::memory_order_relaxed);
    if (last == 0)
        looked_last.compare_exchange_strong(last, now, std::memory_order_relaxed);
    else if (now - last >= look_milliseconds &&
             !looking.exchange(true, std::memory_order_acquire)) {
        if (!group_is_known)
            group.find();
        group_is_known = true;
        is_short.store(group.is_short(), std::memory_order_relaxed);
        looked_last.store(now, std::memory_order_relaxed);
        looking.store(false, std::memory_order_release);
    }
    return is_short.load(std::memory_order_relaxed);
}

void watch_memory(os::cgroup const& other) noexcept
{
    forget_memory();
    group = other;
    group_is_known = true;
}

void forget_memory() noexcept
{
    group_is_known = false;
    is_short.store(false, std::memory_order_relaxed);
    looking.store(false, std::memory_order_relaxed);
}

} // namespace mallard::engine
