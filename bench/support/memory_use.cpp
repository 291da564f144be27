#include <bench/support/memory_use.hpp>

#include <fstream>
#include <string>
#include <string_view>

namespace mallard::bench {
namespace {

std::size_t kib_in(const char* file, std::string_view field)
{
    std::ifstream status(file);
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(field))
            return std::stoul(line.substr(field.size()));
    }
    return 0;
}

} // namespace

std::size_t resident_kib()
{
    return kib_in("/proc/self/status", "VmRSS:");
}

std::size_t peak_resident_kib()
{
    return kib_in("/proc/self/status", "VmHWM:");
}

std::size_t resident_kib_exactly()
{
    std::size_t const kib = kib_in("/proc/self/smaps_rollup", "Rss:");
    return kib != 0 ? kib : resident_kib();
}

void restart_peak_resident()
{
    std::ofstream("/proc/self/clear_refs") << "5\n";
}

} // namespace mallard::bench
