// What the general engine asks of the system, and nothing else of it. No call here
// changes errno but `out_of_memory`, allocates, or stops the process: what the system
// refuses is told by the result. src/os/system_linux.cpp does it on Linux.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sys/single_threaded.h>

namespace mallard::os {

/// Reserves inaccessible address space; null if there is none. A reservation costs no memory, but
/// RLIMIT_AS and mlockall count it. Aligned to `align`, a power of two of at least a page.
std::byte* reserve(std::size_t bytes, std::size_t align) noexcept;

/// Reserved pages become memory, zeroed. False: refused, and nothing has changed.
bool commit(std::byte* at, std::size_t bytes) noexcept;

enum class growth {
    made,
    refused, ///< there is no memory
    blocked, ///< another mapping is there already
};
/// Maps zeroed memory at exactly this address. If the result is not `made`, nothing has changed.
growth map_at(std::byte* at, std::size_t bytes) noexcept;

/// Memory of its own, zeroed; null if refused.
std::byte* map(std::size_t bytes) noexcept;
/// The same pages, perhaps elsewhere; null: refused, they are as they were.
std::byte* remap(std::byte* at, std::size_t bytes, std::size_t bytes_new) noexcept;
/// False: refused, and the pages are still there.
bool unmap(std::byte* at, std::size_t bytes) noexcept;

/// Committed memory goes back and reads as zero from now on. False: refused, as for
/// locked memory, and it is as it was.
bool purge(std::byte* at, std::size_t bytes) noexcept;

/// Whether huge pages are wanted there or not: advice.
void advise_huge(std::byte* at, std::size_t bytes, bool wanted) noexcept;

/// The address space that is left to this process, as far as a limit says.
std::size_t address_space_left() noexcept;

/// Steps of some milliseconds, since some point in time.
std::uint64_t coarse_milliseconds() noexcept;

/// Bits that nobody can guess, as far as the system has any.
std::uint64_t random_bits() noexcept;

/// A full fence in every thread of this process. False: the system has none.
bool barrier_in_all_threads() noexcept;

/// Whether this process has never had a second thread, or has none for certain.
/// As long as it has one, nothing needs the bus for itself.
inline bool is_single_threaded() noexcept
{
    return __libc_single_threaded != 0;
}

/// The sum.
inline std::size_t add(std::atomic<std::size_t>& to, std::size_t amount) noexcept
{
    if (!is_single_threaded())
        return to.fetch_add(amount, std::memory_order_relaxed) + amount;
    std::size_t const sum = to.load(std::memory_order_relaxed) + amount;
    to.store(sum, std::memory_order_relaxed);
    return sum;
}

/// Whether `value` is less than a relaxed load of `limit`, in one instruction; g++ 12 emits two.
inline bool is_below(std::size_t value, const std::atomic<std::size_t>& limit) noexcept
{
    bool result;
    asm("cmpq %[limit], %[value]" : "=@ccb"(result) : [value] "r"(value), [limit] "m"(limit));
    return result;
}

/// Null, and errno is ENOMEM.
void* out_of_memory() noexcept;

void write_error(const char* text, std::size_t bytes) noexcept;

/// Locks that this thread holds or waits for. In a signal handler, not 0 means that the handler has
/// interrupted such code. Locks that a fork keeps do not count.
extern constinit thread_local unsigned locks_of_thread;

/// A mutex of one word, whose waiters sleep. Held for some tens of nanoseconds, or around a system
/// call. A fork holds the lock longer, and marks it as kept: see src/heap/fork.hpp.
class lock {
public:
    void take() noexcept
    {
        while (!take_unless_kept()) [[unlikely]]
            wait_for_fork();
    }
    /// Locks, or returns false if a fork keeps the lock.
    bool take_unless_kept() noexcept
    {
        locks_of_thread += 1;
        std::uint32_t state = open_state;
        if (is_single_threaded() && state_.load(std::memory_order_relaxed) == open_state)
            state_.store(taken, std::memory_order_relaxed);
        else if (!state_.compare_exchange_strong(state, taken, std::memory_order_acquire))
            [[unlikely]]
            return wait();
        return true;
    }
    bool try_take() noexcept
    {
        locks_of_thread += 1;
        std::uint32_t state = open_state;
        bool const done = state_.compare_exchange_strong(state, taken, std::memory_order_acquire);
        locks_of_thread -= !done;
        return done;
    }
    void give() noexcept
    {
        if (is_single_threaded())
            state_.store(open_state, std::memory_order_relaxed);
        else if (state_.exchange(open_state, std::memory_order_release) == awaited) [[unlikely]]
            wake(1);
        locks_of_thread -= 1;
    }

    /// The thread that holds the lock and forks marks it as kept, until `open`. Sleeping waiters
    /// wake and see that the lock is kept.
    void keep() noexcept
    {
        if (state_.exchange(kept, std::memory_order_acq_rel) == awaited)
            wake(all);
        locks_of_thread -= 1;
    }
    void open() noexcept
    {
        if (state_.exchange(open_state, std::memory_order_release) == kept_awaited)
            wake(all);
    }
    bool is_kept() const noexcept { return state_.load(std::memory_order_acquire) >= kept; }

    /// In the child of a fork, where whoever held it may be gone.
    void reset() noexcept { state_.store(open_state, std::memory_order_relaxed); }

private:
    enum : std::uint32_t {
        open_state,
        taken,
        awaited, ///< taken, and somebody may sleep
        kept,
        kept_awaited,
    };
    static constexpr int all = 0x7fffffff;

    bool wait() noexcept;
    void wait_for_fork() noexcept;
    void sleep(std::uint32_t state) noexcept;
    void wake(int most) noexcept;

    std::atomic<std::uint32_t> state_{open_state};
};

class hold {
public:
    explicit hold(lock& l) noexcept : lock_(l) { lock_.take(); }
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
    ~hold() { lock_.give(); }

private:
    lock& lock_;
};

} // namespace mallard::os
