#include "report.hpp"

#include "../os/system.hpp"

#include <cstring>

namespace mallard {

void print_malloc_report(bool json) noexcept
{
    engine::heap_statistics s;
    engine::collect_statistics(s);
    malloc_report const r(s, json);
    os::write_error(r.text, r.out.written());
}

namespace {

/// MALLARD_STATS=text or json: what there is when the program ends.
[[gnu::destructor]] void report_at_end() noexcept
{
    const char* const how = os::option("MALLARD_STATS");
    if (how != nullptr && *how != '\0' && std::strcmp(how, "0") != 0)
        print_malloc_report(std::strcmp(how, "json") == 0);
}

} // namespace

} // namespace mallard
