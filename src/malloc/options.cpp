// What the environment may say to a program that nobody recompiles. Read when the library is
// loaded, before the C library knows it.
//
//   MALLARD_LIMIT=N[K|M|G]   malloc refuses what would exceed N bytes
//   MALLARD_HUGEPAGES=1      large pages are asked for, but for the first MiBs
//   MALLARD_STATS=text|json  a report on descriptor 2 when the program ends (report.cpp)
//   MALLARD_CALLS=1          who allocates and frees is recorded (checked/checked.cpp)
//   MALLARD_MIXED=1          free takes what new made, and the reverse (the same)
#include "options.hpp"

#include "../heap/limits.hpp"
#include "../heap/window.hpp"

#include "../os/system.hpp"

#include <cstdlib>
#include <cstring>

namespace {

/// 0: not a number of bytes.
std::size_t bytes_in(const char* text) noexcept
{
    char* end = nullptr;
    unsigned long long const number = std::strtoull(text, &end, 10);
    unsigned const shift = *end == 'G' ? 30 : *end == 'M' ? 20 : *end == 'K' ? 10 : 0;
    bool const whole = *end == '\0' || (shift != 0 && end[1] == '\0');
    return end != text && whole && number <= ~0ULL >> shift ? number << shift : 0;
}

void read_limit(const char* text) noexcept
{
    std::size_t const bytes = bytes_in(text);
    if (bytes != 0) {
        mallard::engine::the_limits.set(0, bytes, nullptr, nullptr);
        return;
    }
    static constexpr char message[] = "mallard: MALLARD_LIMIT is not a number of bytes\n"
                                      "  there is no limit\n"
                                      "  help: MALLARD_LIMIT=512M, with K, M, G or nothing\n";
    mallard::os::write_error(message, sizeof message - 1);
}

[[gnu::constructor(102)]] void read_options(int, char**, char** environment) noexcept
{
    if (const char* const limit = mallard::value_of("MALLARD_LIMIT", environment))
        read_limit(limit);
    if (const char* const huge = mallard::value_of("MALLARD_HUGEPAGES", environment))
        mallard::engine::huge_pages.store(std::strcmp(huge, "1") == 0, std::memory_order_relaxed);
}

} // namespace
