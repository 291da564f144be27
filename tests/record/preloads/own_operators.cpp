// A library, preloaded after the recorder, with operators new and delete that do not call malloc.
// Operators for 4,321 bytes take a millisecond, and operators for 70,007 bytes fork as a signal
// handler could.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

alignas(16) constinit std::byte memory[16 << 20]{};
constinit std::atomic<std::size_t> used{0};

void sleep_or_fork(std::size_t bytes) noexcept
{
    timespec const pause{0, 1'000'000};
    if (bytes == 4321)
        ::nanosleep(&pause, nullptr);
    if (bytes != 70007)
        return;
    pid_t const child = ::fork();
    int status = 0;
    if (child > 0 && (::waitpid(child, &status, 0) != child || status != 0))
        std::abort();
}

} // namespace

void* operator new(std::size_t bytes)
{
    if (bytes > sizeof memory)
        throw std::bad_alloc();
    std::size_t const at = used.fetch_add((bytes + 15) / 16 * 16);
    if (at + bytes > sizeof memory)
        throw std::bad_alloc();
    sleep_or_fork(bytes);
    return memory + at;
}
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t bytes) noexcept
{
    sleep_or_fork(bytes);
}
