#include "pressure.hpp"

#include <atomic>

namespace mallard::engine {
namespace {

constexpr std::uint64_t look_milliseconds = 1000;

constinit std::atomic<std::uint64_t> looked_last{0};
constinit std::atomic<bool> looking{false}; ///< who comes meanwhile goes by what was known
constinit std::atomic<bool> is_short{false};

// Of the one who looks:
constinit os::cgroup group;
constinit bool has_looked = false;

} // namespace

bool memory_is_short(std::uint64_t now) noexcept
{
    std::uint64_t last = looked_last.load(std::memory_order_relaxed);
    if (last == 0)
        looked_last.compare_exchange_strong(last, now, std::memory_order_relaxed);
    else if (now - last >= look_milliseconds &&
             !looking.exchange(true, std::memory_order_acquire)) {
        if (!has_looked)
            group.find();
        has_looked = true;
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
    has_looked = true;
}

void forget_memory() noexcept
{
    has_looked = false;
    is_short.store(false, std::memory_order_relaxed);
    looking.store(false, std::memory_order_relaxed);
}

} // namespace mallard::engine
