#include <bench/support/memory_use.hpp>

#include <fstream>
#include <string>
#include <string_view>

namespace mallard::bench {
namespace {

std::size_t status_kib(std::string_view field)
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(field))
            return std::stoul(line.substr(field.size()));
    }
    return 0;
}

} // namespace

std::size_t resident_kib()
{
    return status_kib("VmRSS:");
}

std::size_t peak_resident_kib()
{
    return status_kib("VmHWM:");
}

void restart_peak_resident()
{
    std::ofstream("/proc/self/clear_refs") << "5\n";
}

} // namespace mallard::bench
