#include "lock.hpp"

#include "errno_kept_linux.hpp"
#include "processor.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mallard::os {

constinit thread_local unsigned locks_of_thread = 0;

bool lock::wait() noexcept
{
    for (int spins = 0;; ++spins) {
        std::uint32_t state = state_.load(std::memory_order_relaxed);
        bool const has_slept = spins > 100;
        if (state >= kept) {
            // A wake-up reaches only one waiter. This waiter does not acquire the lock, so it must
            // wake all others.
            if (has_slept)
                wake(all);
            locks_of_thread -= 1;
            return false;
        }
        if (state == open_state) {
            if (state_.compare_exchange_weak(state, has_slept ? awaited : taken,
                                             std::memory_order_acquire))
                return true;
        } else if (spins < 100) {
            pause();
        } else if (state == awaited ||
                   state_.compare_exchange_weak(state, awaited, std::memory_order_relaxed)) {
            sleep(awaited);
        }
    }
}

void lock::wait_for_fork() noexcept
{
    std::uint32_t state = kept;
    if (state_.compare_exchange_strong(state, kept_awaited, std::memory_order_relaxed) ||
        state == kept_awaited)
        sleep(kept_awaited);
}

void lock::sleep(std::uint32_t state) noexcept
{
    errno_kept const keep;
    ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, state, nullptr, nullptr, 0);
}

void lock::wake(int most) noexcept
{
    errno_kept const keep;
    ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

} // namespace mallard::os
