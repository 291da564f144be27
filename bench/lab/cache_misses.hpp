// Counts misses of the last-level cache if the machine can count them. Virtual machines rarely can.
#pragma once

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace mallard::bench::lab {

/// Counts the misses of this thread since construction. Misses inside the kernel do not count.
class cache_misses {
public:
    cache_misses() noexcept
    {
        perf_event_attr wanted{};
        wanted.size = sizeof wanted;
        wanted.type = PERF_TYPE_HARDWARE;
        wanted.config = PERF_COUNT_HW_CACHE_MISSES;
        wanted.exclude_kernel = 1;
        wanted.exclude_hv = 1;
        counter_ = static_cast<int>(syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0));
    }
    cache_misses(cache_misses const&) = delete;
    cache_misses& operator=(cache_misses const&) = delete;
    ~cache_misses()
    {
        if (works())
            close(counter_);
    }

    bool works() const noexcept { return counter_ >= 0; }

    /// Returns the misses so far, or 0 if the machine does not count them.
    double so_far() const noexcept
    {
        std::uint64_t count = 0;
        if (!works() || read(counter_, &count, sizeof count) != sizeof count)
            return 0;
        return static_cast<double>(count);
    }

private:
    int counter_ = -1;
};

} // namespace mallard::bench::lab
