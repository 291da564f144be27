// System functions for the malloc engine: a clock, random bits, a memory barrier in all threads,
// and cheap atomics for a process with one thread. No function allocates or stops the process, and
// only `out_of_memory` changes errno.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h> // glibc
#endif

namespace mallard::os {

/// Returns the time of a monotonic clock in milliseconds. The clock advances in steps of a few
/// milliseconds, and is cheap to read.
std::uint64_t coarse_milliseconds() noexcept;

/// Returns unpredictable bits from the kernel. If the kernel has no random bits yet, computes bits
/// from the clock and addresses instead.
std::uint64_t random_bits() noexcept;

/// Executes a full memory barrier in every thread of this process (membarrier). Returns false if
/// the system does not support this.
bool barrier_in_all_threads() noexcept;

/// Returns whether this process certainly has only one thread. In that case, plain loads and stores
/// can replace atomic read-modify-write instructions, which lock the bus.
inline bool is_single_threaded() noexcept
{
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded != 0;
#else
    return false;
#endif
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

/// Returns whether `value` is less than a relaxed load of `limit`. Uses assembly on x86-64, since
/// g++ 12 emits a load and a comparison instead of one instruction.
inline bool is_below(std::size_t value, const std::atomic<std::size_t>& limit) noexcept
{
#if defined(__x86_64__)
    bool result;
    asm("cmpq %[limit], %[value]" : "=@ccb"(result) : [value] "r"(value), [limit] "m"(limit));
    return result;
#else
    return value < limit.load(std::memory_order_relaxed);
#endif
}

/// Sets errno to ENOMEM and returns null.
void* out_of_memory() noexcept;

/// Finds libmallard-checked.so in the directory of the shared library that contains this code, or
/// in the subdirectory `mallard`. Writes the path to the `bytes` bytes at `path`. Returns false if
/// libmallard-checked.so is not installed, if its path contains a space or a colon, if it contains
/// this code itself, or if this code is linked into the program, so that no library can replace it.
bool find_checked_malloc(char* path, std::size_t bytes) noexcept;

/// Writes to standard error.
void write_error(const char* text, std::size_t bytes) noexcept;

} // namespace mallard::os
