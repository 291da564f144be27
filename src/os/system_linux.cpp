#include "system.hpp"

#include "errno_kept_linux.hpp"

#include <mallard/detail/base/text.hpp>

#include <cstring>
#include <ctime>
#include <initializer_list>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mallard::os {

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
    // A process must register first. The child of a fork is a new process, so it must register
    // again.
    return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
           ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void* out_of_memory() noexcept
{
    errno = ENOMEM;
    return nullptr;
}

bool find_checked_malloc(char* path, std::size_t bytes) noexcept
{
    errno_kept const keep;
    Dl_info here{};
    // Test whether this code is in the program itself, whose headers are near the start of its
    // first segment.
    if (::dladdr(reinterpret_cast<const void*>(&coarse_milliseconds), &here) == 0 ||
        ::getauxval(AT_PHDR) - reinterpret_cast<std::uintptr_t>(here.dli_fbase) < 4096 ||
        std::strstr(here.dli_fname, "-checked.so") != nullptr ||
        std::strpbrk(here.dli_fname, " :") != nullptr) // these separate paths in LD_PRELOAD
        return false;
    const char* const slash = std::strrchr(here.dli_fname, '/');
    for (const char* const file : {"libmallard-checked.so", "mallard/libmallard-checked.so"}) {
        text_writer out{path, bytes};
        for (const char* at = here.dli_fname; slash != nullptr && at <= slash; ++at)
            out << *at;
        out << file << '\0';
        if (out.needed() <= bytes && ::syscall(SYS_faccessat, AT_FDCWD, path, R_OK) == 0)
            return true;
    }
    return false;
}

void write_error(const char* text, std::size_t bytes) noexcept
{
    errno_kept const keep;
    while (bytes != 0) {
        // Do not call write() of the C library, because it is a cancellation point, which
        // malloc_stats must not be.
        long const written = ::syscall(SYS_write, STDERR_FILENO, text, bytes);
        if (written <= 0)
            return;
        text += written;
        bytes -= static_cast<std::size_t>(written);
    }
}

} // namespace mallard::os
