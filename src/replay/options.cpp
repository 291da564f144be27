#include "options.hpp"

#include "failure.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mallard::replay {
namespace {

constexpr const char* usage = R"(usage: mallard-replay [options] FILE
       mallard-replay --virtual-call

Repeats the calls of an op stream, and prints their cost as JSON.

  --touch none|page|all  what is written to new blocks: nothing, a byte of each page, or
                         every byte (page)
  --pace none|real|F     waits between calls as the program did, F times as long (none)
  --litter SHARE         first allocates as many blocks as the program had at its peak, and
                         frees all but this share of them (0: no such blocks)
  --no-op                allocates nothing, which shows the cost of the replayer alone
  --hash                 prints a hash of the calls of each thread
  --account              counts the memory of the local allocators, without timing
  --check                replays nothing; checks whether an op may run before an op of
                         another thread on which it depends
  --virtual-call         measures what a virtual call through std::pmr costs on this machine
)";

constexpr const char* unchanged = "nothing was replayed";
constexpr const char* show_usage = "mallard-replay --help";

/// Returns the value of an option, which is the part after `=`, or the next argument. Returns null
/// if the argument is another option.
const char* value_of(const char* name, int count, char** arguments, int& at) noexcept
{
    const char* const argument = arguments[at];
    std::size_t const length = std::strlen(name);
    if (std::strncmp(argument, name, length) != 0)
        return nullptr;
    if (argument[length] == '=')
        return argument + length + 1;
    if (argument[length] != '\0')
        return nullptr;
    if (at + 1 >= count || arguments[at + 1] == nullptr)
        fail(status_usage, unchanged, show_usage, "%s has no value", name);
    return arguments[++at];
}

[[noreturn]] void refuse(const char* name, const char* value, const char* wanted) noexcept
{
    fail(status_usage, unchanged, show_usage, "%s %.100s: the value is not %s", name, value,
         wanted);
}

touch touch_of(const char* value) noexcept
{
    if (std::strcmp(value, "none") == 0)
        return touch::none;
    if (std::strcmp(value, "page") == 0)
        return touch::page;
    if (std::strcmp(value, "all") == 0)
        return touch::all;
    refuse("--touch", value, "none, page or all");
}

/// Parses a number from `least` to `most`.
double number_of(const char* name, const char* value, double least, double most,
                 const char* wanted) noexcept
{
    char* end = nullptr;
    double const number = std::strtod(value, &end);
    if (end == value || *end != '\0' || !(number >= least && number <= most))
        refuse(name, value, wanted);
    return number;
}

double pace_of(const char* value) noexcept
{
    if (std::strcmp(value, "none") == 0)
        return 0;
    if (std::strcmp(value, "real") == 0)
        return 1;
    return number_of("--pace", value, 0.000001, 1e6,
                     "none, real, or a factor from 0.000001 to 1e6");
}

bool is_mode(const char* argument, options& o) noexcept
{
    struct named {
        const char* name;
        replay::mode mode;
    };
    constexpr named modes[] = {{"--no-op", mode::no_op},
                               {"--hash", mode::hash},
                               {"--account", mode::account},
                               {"--check", mode::check},
                               {"--virtual-call", mode::virtual_call}};
    for (named const& m : modes) {
        if (std::strcmp(argument, m.name) != 0)
            continue;
        if (o.mode != mode::play && o.mode != m.mode)
            fail(status_usage, unchanged, show_usage, "%s and another mode exclude each other",
                 argument);
        o.mode = m.mode;
        return true;
    }
    return false;
}

void take(options& o, int count, char** arguments, int& at) noexcept
{
    const char* const argument = arguments[at];
    if (is_mode(argument, o))
        return;
    if (const char* const touched = value_of("--touch", count, arguments, at)) {
        o.touch = touch_of(touched);
    } else if (const char* const paced = value_of("--pace", count, arguments, at)) {
        o.pace = pace_of(paced);
    } else if (const char* const share = value_of("--litter", count, arguments, at)) {
        o.litter = number_of("--litter", share, 0, 1, "a share from 0 to 1");
        o.has_litter = o.litter > 0;
    } else if (argument[0] == '-') {
        fail(status_usage, unchanged, show_usage, "there is no option %.100s", argument);
    } else if (o.file != nullptr) {
        fail(status_usage, unchanged, "give one file: mallard-replay FILE",
             "there are two files, %.100s and %.100s", o.file, argument);
    } else {
        o.file = argument;
    }
}

} // namespace

options options::parse(int count, char** arguments) noexcept
{
    options o;
    for (int at = 1; at < count; ++at) {
        if (std::strcmp(arguments[at], "--help") == 0 || std::strcmp(arguments[at], "-h") == 0) {
            std::fputs(usage, stdout);
            std::exit(0);
        }
        take(o, count, arguments, at);
    }
    if ((o.file == nullptr) != (o.mode == mode::virtual_call))
        fail(status_usage, unchanged, show_usage, "%s",
             o.file == nullptr ? "no op stream is given" : "--virtual-call takes no file");
    return o;
}

} // namespace mallard::replay
