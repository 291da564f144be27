// Options of malloc, set by environment variables:
//
//   MALLARD_LIMIT=N[K|M|G]     malloc fails when more than N bytes would be in use
//   MALLARD_HUGEPAGES=0|1      asks for huge pages, except for the first 4 MiB
//   MALLARD_STATS=0|text|json  prints a report to standard error when the program ends
//   MALLARD_CALLS=0|1          records the call stacks of allocations (checked/checked.cpp)
//   MALLARD_MIXED=0|1          lets `free` accept blocks of `new`, and `delete` blocks of malloc
//
// An invalid value changes nothing, and is reported in one line on standard error. An empty value
// counts as unset.
#include "options.hpp"

#include "report.hpp"

#include "../heap/limits.hpp"
#include "../heap/reservation.hpp"

#include "../os/libc.hpp"
#include "../os/system.hpp"

#include <mallard/c/malloc.h>
#include <mallard/detail/base/text.hpp>

#include <backend.hpp>

#include <sys/auxv.h>
#include <unistd.h>

/// Another name of this library's `mallard_trim` (see heap_api.cpp).
extern "C" [[gnu::visibility("hidden")]] int own_mallard_trim(std::size_t keep_bytes);

namespace mallard {
namespace {

const char* value_of(const char* name, char** environment) noexcept
{
    std::size_t const length = std::strlen(name);
    for (; environment != nullptr && *environment != nullptr; ++environment)
        if (std::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return "";
}

/// Prints one line about an invalid value. Truncates the value to 40 characters, and replaces
/// unprintable characters.
void warn(const option& o, const char* value) noexcept
{
    char line[640];
    text_writer out{line, sizeof line - 1};
    out << "mallard: " << o.name << '=';
    int shown = 0;
    for (; *value != '\0' && shown < 40; ++value, ++shown)
        out << (*value >= ' ' && *value <= '~' ? *value : '?');
    out << (*value != '\0' ? "... " : " ") << o.otherwise;
    char path[256];
    if (o.is_for_checked) {
        if (os::find_checked_malloc(path, sizeof path))
            out << "; help: LD_PRELOAD=" << path;
        else
            out << "; help: " << o.name << "=, as that malloc cannot replace this one";
    }
    line[out.written()] = '\n';
    os::write_error(line, out.written() + 1);
}

/// Parses a number of bytes with an optional suffix K, M or G. Returns 0 if the text is not such a
/// number.
std::size_t bytes_in(const char* text) noexcept
{
    std::size_t number = 0;
    for (; *text >= '0' && *text <= '9'; ++text)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, static_cast<std::size_t>(*text - '0'), &number))
            return 0;
    unsigned const shift = *text == 'G' ? 30 : *text == 'M' ? 20 : *text == 'K' ? 10 : 0;
    bool const is_whole = *text == '\0' || (shift != 0 && text[1] == '\0');
    return is_whole && number <= ~std::size_t{0} >> shift ? number << shift : 0;
}

bool take_limit(const char* value) noexcept
{
    std::size_t const bytes = bytes_in(value);
    if (bytes == 0)
        return false;
    engine::the_limits.set(0, bytes, nullptr, nullptr);
    if (bytes < engine::slice_bytes)
        warn({"MALLARD_LIMIT", nullptr,
              "is less than the 16 KiB that a block needs; every malloc call fails; "
              "help: MALLARD_LIMIT=512M"},
             value);
    return true;
}

bool take_huge_pages(const char* value) noexcept
{
    bool wanted;
    if (!is_switch(value, wanted))
        return false;
    engine::huge_pages.store(wanted, std::memory_order_relaxed);
    return true;
}

bool take_report(const char* value) noexcept
{
    static constexpr struct {
        const char* name;
        report_form form;
    } known[] = {
        {"0", report_form::none}, {"text", report_form::text}, {"json", report_form::json}};
    for (auto const& k : known)
        if (std::strcmp(value, k.name) == 0)
            return report_at_end = k.form, true;
    return false;
}

constexpr option of_every_build[] = {
    {"MALLARD_LIMIT", take_limit,
     "is not a number of bytes; there is no limit; help: MALLARD_LIMIT=512M, with K, M, G or "
     "nothing"},
    {"MALLARD_HUGEPAGES", take_huge_pages,
     "is neither 0 nor 1; no huge pages are requested; help: MALLARD_HUGEPAGES=1"},
    {"MALLARD_STATS", take_report,
     "is neither text nor json nor 0; there will be no report; help: MALLARD_STATS=text"},
};

// Options of libmallard-checked.so. libmallard.so accepts only the values that describe its own
// behaviour, which are MALLARD_CALLS=0 (no recorded call stacks) and MALLARD_MIXED=1 (`free`
// accepts blocks of `new`).
constexpr option of_the_checked_build[] = {
    {"MALLARD_CALLS", [](const char* value) noexcept { return std::strcmp(value, "0") == 0; },
     "is for the checked malloc; no calls are recorded", true},
    {"MALLARD_MIXED", [](const char* value) noexcept { return std::strcmp(value, "1") == 0; },
     "is for the checked malloc; free accepts blocks of new", true},
};

/// Returns whether this library is the malloc of the process, because no other library of Mallard,
/// such as the checked malloc, was preloaded before it. The loader binds `mallard_trim` to the
/// first such library, and `own_mallard_trim` to this library. The pointers are volatile, because a
/// compiler may otherwise assume that two functions have different addresses.
bool is_malloc_of_process() noexcept
{
    auto* volatile const first = &mallard_trim;
    auto* volatile const own = &own_mallard_trim;
    return first == own;
}

[[gnu::constructor(102)]] void read_all(int, char**, char** environment) noexcept
{
    if (!is_malloc_of_process())
        return;
    read_options(of_every_build, environment);
    if constexpr (!malloc_is_checked)
        read_options(of_the_checked_build, environment);
}

} // namespace

extern const bool options_are_read = true;

void read_options(std::span<const option> options, char** environment) noexcept
{
    if constexpr (!os::is_glibc) // other C libraries pass no arguments to constructors
        environment = ::environ;
    if (::getauxval(AT_SECURE) != 0)
        return;
    for (option const& o : options) {
        const char* const value = value_of(o.name, environment);
        if (*value != '\0' && !o.take(value))
            warn(o, value);
    }
}

} // namespace mallard
