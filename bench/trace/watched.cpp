#include <bench/trace/watched.hpp>

#include <cstdio>

namespace mallard::bench {
namespace {

words watched(recording_command const& command)
{
    words all{program_folder() + "/mallard-bench-watch", std::to_string(command.program.size())};
    all.insert(all.end(), command.before.begin(), command.before.end());
    all.insert(all.end(), command.program.begin(), command.program.end());
    return all;
}

/// Returns the name of the command: the first word that is not NAME=VALUE.
std::string name_of(recording_command const& command)
{
    for (std::string const& word : command.before) {
        if (word.find('=') == std::string::npos)
            return word;
    }
    return command.program.empty() ? "" : command.program.front();
}

constexpr int patience_ms = 400'000; // heaptrack prints nothing while it looks up symbols

} // namespace

watched_command::watched_command(recording_command const& command)
    : name_(name_of(command)),
      process_(watched(command), "", process::complaints::shown, patience_ms)
{
}

watched_result watched_command::wait()
{
    watched_result result{.output = process_.read_all()};
    std::size_t const at = result.output.rfind("\n@ ");
    int status = -1;
    if (at == std::string::npos ||
        std::sscanf(result.output.c_str() + at, "\n@ %d %lf %lf %lf %lf %lf %lf", &status,
                    &result.seconds, &result.cpu_seconds, &result.peak_kib, &result.all_seconds,
                    &result.all_cpu_seconds, &result.other_peak_kib) != 7)
        throw cannot_run(name_ + " cannot be traced here, or printed nothing for too long");
    if (status != 0)
        throw cannot_run(name_ + " ended with " + described(status));
    result.output.resize(at);
    for (double* const ns :
         {&result.seconds, &result.cpu_seconds, &result.all_seconds, &result.all_cpu_seconds})
        *ns *= 1e-9;
    return result;
}

} // namespace mallard::bench
