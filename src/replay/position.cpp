#include "position.hpp"

#include "../os/processor.hpp"
#include "../os/system.hpp"

#include <thread>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace mallard::replay {
namespace {

/// Sleeps while `word` has the value `seen`, but at most for a millisecond if `briefly` is true.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t seen, bool briefly) noexcept
{
    timespec const millisecond{0, 1'000'000};
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, briefly ? &millisecond : nullptr, nullptr,
              0);
}

} // namespace

void position::wake_all() noexcept
{
    wanted_.exchange(never);
    wakes_.fetch_add(1);
    ::syscall(SYS_futex, &wakes_, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

void position::ask_for(std::uint64_t at) noexcept
{
    std::uint64_t known = wanted_.load();
    while (at < known && !wanted_.compare_exchange_weak(known, at)) {}
}

void position::wait_longer(std::uint64_t at, unsigned spins) noexcept
{
    for (; spins != 0; --spins) {
        os::pause();
        if (position_.load(std::memory_order_acquire) >= at)
            return;
    }
    for (;;) {
        std::uint32_t const seen = wakes_.load();
        ask_for(at);
        // Without membarrier, this thread may miss a publish, so the sleep must be short.
        bool const has_barrier = os::barrier_in_all_threads();
        if (position_.load(std::memory_order_acquire) >= at)
            return;
        sleep_while(wakes_, seen, !has_barrier);
    }
}

} // namespace mallard::replay
