#include "report.hpp"

#include "../os/system.hpp"

namespace mallard {

void print_malloc_report(bool json) noexcept
{
    engine::heap_statistics s;
    engine::collect_statistics(s);
    malloc_report const r(s, json);
    os::write_error(r.text, r.out.written());
}

constinit report_form report_at_end = report_form::none;

namespace {

[[gnu::destructor]] void end() noexcept
{
    if (report_at_end != report_form::none)
        print_malloc_report(report_at_end == report_form::json);
}

} // namespace

} // namespace mallard
