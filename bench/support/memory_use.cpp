#include <bench/support/memory_use.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace mallard::bench {
namespace {

// Reads a field without allocating, because the allocator of this process may be measured.
std::size_t kib_in(const char* file, std::string_view field)
{
    char text[8192];
    std::size_t size = 0;
    int const from = open(file, O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 0; (got = read(from, text + size, sizeof text - 1 - size)) > 0;)
        size += static_cast<std::size_t>(got);
    close(from);
    text[size] = '\0';
    std::size_t const at = std::string_view(text, size).find(field);
    return at == std::string_view::npos ? 0 : std::strtoul(text + at + field.size(), nullptr, 10);
}

} // namespace

std::size_t resident_kib()
{
    return kib_in("/proc/self/status", "\nVmRSS:");
}

std::size_t peak_resident_kib()
{
    return kib_in("/proc/self/status", "\nVmHWM:");
}

std::size_t resident_kib_exactly()
{
    std::size_t const kib = kib_in("/proc/self/smaps_rollup", "\nRss:");
    return kib != 0 ? kib : resident_kib();
}

void restart_peak_resident()
{
    int const to = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    // Ignores an error. If the kernel forbids the reset, the peak stays unchanged.
    [[maybe_unused]] ssize_t const written = write(to, "5\n", 2);
    close(to);
}

} // namespace mallard::bench
