// What the engine says about itself, as text or JSON: written without allocating.
#pragma once

#include "../heap/statistics.hpp"

namespace mallard {

/// A line for each class and those above them.
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

/// Of what there is now, on descriptor 2.
void print_malloc_report(bool json) noexcept;

/// What is printed when the program ends.
enum class report_form : unsigned char { none, text, json };
extern constinit report_form report_at_end;

} // namespace mallard
