// The operating system as the malloc engine uses it: memory mappings, a clock, random bits, a
// memory barrier in all threads, and a lock. No function allocates or stops the process, and only
// `out_of_memory` changes errno. A result says whether the system refused.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sys/single_threaded.h>

namespace mallard::os {

/// Reserves inaccessible address space, aligned to `align`, a power of two. Null if there is none.
/// A reservation costs no memory, but RLIMIT_AS and mlockall count it.
std::byte* reserve(std::size_t bytes, std::size_t align) noexcept;

/// Makes reserved pages readable and writable; they read as zero. False: the system refused, and
/// nothing has changed.
bool commit(std::byte* at, std::size_t bytes) noexcept;

enum class growth {
    made,
    refused, ///< the system has no memory
    blocked, ///< another mapping is there already
};
/// Maps zeroed memory at exactly this address. If the result is not `made`, nothing has changed.
growth map_at(std::byte* at, std::size_t bytes) noexcept;

/// Maps zeroed memory anywhere; null if the system refuses.
std::byte* map(std::size_t bytes) noexcept;
/// Resizes a mapping, which may move. Null: the system refused, and the mapping is as before.
std::byte* remap(std::byte* at, std::size_t bytes, std::size_t bytes_new) noexcept;
/// Unmaps pages. False: the system refused, and the pages are still mapped.
bool unmap(std::byte* at, std::size_t bytes) noexcept;

/// Returns the pages to the system; the address space stays and reads as zero. False: the system
/// refused, as it does for locked memory, and the contents are unchanged.
bool purge(std::byte* at, std::size_t bytes) noexcept;

/// Advises the system to use huge pages there, or not to.
void advise_huge(std::byte* at, std::size_t bytes, bool wanted) noexcept;

/// Bytes of address space below RLIMIT_AS that are not mapped yet; SIZE_MAX without a limit.
std::size_t address_space_left() noexcept;

/// A monotonic clock in milliseconds that advances in steps of some milliseconds. Cheap to read.
std::uint64_t coarse_milliseconds() noexcept;

/// Unpredictable bits from the kernel; from the clock and addresses if the kernel has none yet.
std::uint64_t random_bits() noexcept;

/// Executes a full memory barrier in every thread of this process (membarrier). False: the system
/// cannot.
bool barrier_in_all_threads() noexcept;

/// Whether this process certainly has one thread. Then plain loads and stores replace atomic
/// read-modify-write instructions, which lock the bus.
inline bool is_single_threaded() noexcept
{
    return __libc_single_threaded != 0;
}

/// Adds to a counter and returns the sum.
inline std::size_t add(std::atomic<std::size_t>& to, std::size_t amount) noexcept
{
    if (!is_single_threaded())
        return to.fetch_add(amount, std::memory_order_relaxed) + amount;
    std::size_t const sum = to.load(std::memory_order_relaxed) + amount;
    to.store(sum, std::memory_order_relaxed);
    return sum;
}

/// Whether `value` is less than a relaxed load of `limit`. Assembly, since g++ 12 emits a load and
/// a comparison instead of one instruction.
inline bool is_below(std::size_t value, const std::atomic<std::size_t>& limit) noexcept
{
    bool result;
    asm("cmpq %[limit], %[value]" : "=@ccb"(result) : [value] "r"(value), [limit] "m"(limit));
    return result;
}

/// Sets errno to ENOMEM and returns null.
void* out_of_memory() noexcept;

void write_error(const char* text, std::size_t bytes) noexcept;

/// The number of locks that this thread holds or waits for. A signal handler that reads a number
/// above 0 has interrupted code inside a lock. Locks that a fork keeps do not count.
extern constinit thread_local unsigned locks_of_thread;

/// A mutex of one word (futex). Waiters spin, then sleep. Threads hold a lock for some tens of
/// nanoseconds, or during one system call. A fork holds all locks for longer and marks them as
/// kept: see src/heap/guests.hpp.
class lock {
public:
    void take() noexcept
    {
        while (!take_unless_kept()) [[unlikely]]
            wait_for_fork();
    }
    /// Locks and returns true, or returns false if a fork keeps the lock.
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

    /// Marks the lock as kept until `open`. The thread that holds the lock calls this before it
    /// forks. Sleeping waiters wake up and see that the lock is kept.
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

    /// Unlocks in the child of a fork, where the thread that held the lock may not exist.
    void reset() noexcept { state_.store(open_state, std::memory_order_relaxed); }

private:
    enum : std::uint32_t {
        open_state,
        taken,
        awaited, ///< taken, and a waiter may sleep
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

/// Locks during its scope.
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
