// Services for the malloc engine, by Linux system calls.
#include "system.hpp"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mallard::os {
namespace {

/// Restores errno at the end of its scope: malloc and free that succeed leave errno unchanged.
class errno_kept {
public:
    errno_kept() noexcept : before_(errno) {}
    errno_kept(const errno_kept&) = delete;
    errno_kept& operator=(const errno_kept&) = delete;
    ~errno_kept() { errno = before_; }

private:
    int before_;
};

constexpr std::size_t page = 4096;

std::byte* map_as(void* where, std::size_t bytes, int protection, int flags) noexcept
{
    void* const at = ::mmap(where, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

std::size_t mapped_bytes() noexcept
{
    int const file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    char text[24] = {};
    ssize_t const length = ::read(file, text, sizeof text - 1);
    ::close(file);
    return length > 0 ? std::strtoull(text, nullptr, 10) * page : 0;
}

} // namespace

std::byte* reserve(std::size_t bytes, std::size_t align) noexcept
{
    errno_kept const keep;
    std::size_t const wide = align <= page ? bytes : bytes + align;
    if (wide < bytes)
        return nullptr;
    std::byte* const at = map_as(nullptr, wide, PROT_NONE, MAP_NORESERVE);
    if (at == nullptr)
        return nullptr;
    std::size_t const before = -reinterpret_cast<std::uintptr_t>(at) & (align - 1);
    if (align <= page)
        return at;
    if (before != 0)
        ::munmap(at, before);
    if (wide - before != bytes)
        ::munmap(at + before + bytes, wide - before - bytes);
    return at + before;
}

bool commit(std::byte* at, std::size_t bytes) noexcept
{
    errno_kept const keep;
    // A sandbox may forbid mprotect; a new mapping in the same place does the same.
    return ::mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0 ||
           (errno != ENOMEM &&
            map_as(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_NORESERVE) != nullptr);
}

growth map_at(std::byte* at, std::size_t bytes) noexcept
{
    errno_kept const keep;
    std::byte* const there =
        map_as(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | MAP_NORESERVE);
    if (there == at)
        return growth::made;
    if (there == nullptr)
        return errno == EEXIST ? growth::blocked : growth::refused;
    ::munmap(there, bytes); // a kernel before 4.17, or Valgrind, takes the address as a hint
    return growth::blocked;
}

std::byte* map(std::size_t bytes) noexcept
{
    errno_kept const keep;
    return map_as(nullptr, bytes, PROT_READ | PROT_WRITE, 0);
}

std::byte* remap(std::byte* at, std::size_t bytes, std::size_t bytes_new) noexcept
{
    errno_kept const keep;
    void* const moved = ::mremap(at, bytes, bytes_new, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? nullptr : static_cast<std::byte*>(moved);
}

bool unmap(std::byte* at, std::size_t bytes) noexcept
{
    errno_kept const keep;
    return ::munmap(at, bytes) == 0;
}

bool purge(std::byte* at, std::size_t bytes) noexcept
{
    errno_kept const keep;
    return ::madvise(at, bytes, MADV_DONTNEED) == 0;
}

void advise_huge(std::byte* at, std::size_t bytes, bool wanted) noexcept
{
    errno_kept const keep;
    ::madvise(at, bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

std::size_t address_space_left() noexcept
{
    errno_kept const keep;
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    std::size_t const mapped = mapped_bytes();
    return mapped < limit.rlim_cur ? limit.rlim_cur - mapped : 0;
}

std::uint64_t coarse_milliseconds() noexcept
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
           static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

std::uint64_t random_bits() noexcept
{
    errno_kept const keep;
    std::uint64_t bits = 0;
    if (::syscall(SYS_getrandom, &bits, sizeof bits, 1 /* GRND_NONBLOCK */) == sizeof bits)
        return bits;
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    bits = static_cast<std::uint64_t>(now.tv_nsec) ^ reinterpret_cast<std::uintptr_t>(&now);
    return (bits ^ static_cast<std::uint64_t>(::getpid()) << 32) * 0x9e3779b97f4a7c15;
}

bool barrier_in_all_threads() noexcept
{
    errno_kept const keep;
    if (::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return true;
    // A process has to register first. The child of a fork is a new process.
    return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
           ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void* out_of_memory() noexcept
{
    errno = ENOMEM;
    return nullptr;
}

void write_error(const char* text, std::size_t bytes) noexcept
{
    errno_kept const keep;
    while (bytes != 0) {
        // write() of the C library is a cancellation point, and malloc_stats must not be one.
        long const written = ::syscall(SYS_write, STDERR_FILENO, text, bytes);
        if (written <= 0)
            return;
        text += written;
        bytes -= static_cast<std::size_t>(written);
    }
}

constinit thread_local unsigned locks_of_thread = 0;

bool lock::wait() noexcept
{
    for (int spins = 0;; ++spins) {
        std::uint32_t state = state_.load(std::memory_order_relaxed);
        bool const has_slept = spins > 100;
        if (state >= kept) {
            if (has_slept) // this waiter was woken alone, and does not take the lock: wake the rest
                wake(all);
            locks_of_thread -= 1;
            return false;
        }
        if (state == open_state) {
            if (state_.compare_exchange_weak(state, has_slept ? awaited : taken,
                                             std::memory_order_acquire))
                return true;
        } else if (spins < 100) {
            __builtin_ia32_pause();
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
