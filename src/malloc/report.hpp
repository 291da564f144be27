// The statistics report of malloc, as text or JSON. Writing the report does not allocate.
#pragma once

#include "../heap/statistics.hpp"

namespace mallard {

/// The text of a report, with sums, and a line for each size class in use.
struct malloc_report {
    char text[8192];
    text_writer out{text, sizeof text};

    malloc_report(const engine::heap_statistics& s, bool json) noexcept
    {
        if (json)
            engine::write_json(s, out);
        else
            engine::write_text(s, out);
    }
};

/// Prints the current statistics to standard error.
void print_malloc_report(bool json) noexcept;

/// The format of the report that is printed when the program exits.
enum class report_form : unsigned char { none, text, json };
extern constinit report_form report_at_end;

} // namespace mallard
