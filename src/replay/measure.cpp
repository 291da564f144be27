#include "measure.hpp"

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace mallard::replay {
namespace {

std::uint64_t field(const char* text, const char* name) noexcept
{
    const char* const found = std::strstr(text, name);
    return found == nullptr ? 0 : std::strtoull(found + std::strlen(name), nullptr, 10);
}

} // namespace

memory_use memory_use::read() noexcept
{
    char text[4096];
    int const file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return {};
    ssize_t const length = ::read(file, text, sizeof text - 1);
    ::close(file);
    if (length <= 0)
        return {};
    text[length] = '\0';
    return {field(text, "VmRSS:"), field(text, "VmHWM:")};
}

void forget_peak() noexcept
{
    int const file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    [[maybe_unused]] ssize_t const written = ::write(file, "5", 1);
    ::close(file);
}

process_use process_use::read() noexcept
{
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    auto const system = static_cast<std::uint64_t>(used.ru_stime.tv_sec) * 1'000'000'000 +
                        static_cast<std::uint64_t>(used.ru_stime.tv_usec) * 1000;
    return {now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID), system,
            static_cast<std::uint64_t>(used.ru_minflt), static_cast<std::uint64_t>(used.ru_majflt)};
}

} // namespace mallard::replay
