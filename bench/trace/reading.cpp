#include <bench/trace/reading.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

namespace mallard::bench {
namespace {

/// The programs whose recordings are read. There is a second program, because heaptrack 1.4.0
/// cannot look up the symbols of cc1plus on every machine.
constexpr std::array programs{"cc1plus", "python3-malloc"};

/// A directory with the recording that one recorder made of one program.
class recording {
public:
    recording(recorder const& with, workload const& of, double share)
    {
        std::filesystem::create_directory(folder_ / "record");
        words const command = of.command(folder_, share);
        watched_command(with.record(command, folder())).wait();
    }

    std::string folder() const { return folder_ / "record"; }

private:
    temporary_folder folder_;
};

/// The recordings so far, by program and recorder. Cases share them.
using recordings = std::map<std::pair<std::string, std::string>, std::shared_ptr<recording>>;

std::shared_ptr<recording> recorded(recordings& all, recorder const& with, workload const& of,
                                    double share)
{
    std::shared_ptr<recording>& made = all[{of.name, with.name()}];
    if (made == nullptr)
        made = std::make_shared<recording>(with, of, share);
    return made;
}

void measure(words const& command, std::span<double> out)
{
    watched_result const result = watched_command({command, {}}).wait();
    out[0] = result.all_seconds;
    out[1] = result.all_cpu_seconds;
    out[2] = result.other_peak_kib;
}

experiment asked(reading const& question, workload const& of, effort how,
                 std::shared_ptr<recordings> const& all)
{
    experiment e{
        .asks = question.asks, .figures = {}, .entrants = {}, .rounds = 5, .with_memory = false};
    e.in_brief = false;
    e.once = how.is_smoke();
    for (const char* const metric : {"seconds", "cpu_seconds", "peak_rss_kib"})
        e.figures.push_back({question.name, metric, of.name, of.threads});
    for (reader const& r : question.readers) {
        e.entrants.push_back({.name = [r] { return r.name; },
                              .prepare = [r, of, how, all]() -> round_function {
                                  r.with->insist();
                                  auto const made = recorded(*all, *r.with, of, share_of(how));
                                  words const command = r.command(made->folder());
                                  return [made, command](std::span<double> out) {
                                      measure(command, out);
                                  };
                              }});
    }
    return e;
}

words report(std::string const& folder)
{
    return {mallard_command(), "report", folder + "/run.mallard", "-o", folder + "/report.html"};
}

/// Returns the command for a query of docs/examples/sql. Uses the DuckDB that `./x` has installed.
words documented(std::string const& query, std::string const& folder)
{
    std::filesystem::path const build =
        std::filesystem::path(program_folder()).parent_path().parent_path();
    if (!std::filesystem::exists(build / "tools/duckdb/bin/duckdb"))
        throw cannot_run("DuckDB is not installed; help: connect to a network and start this by "
                         "./x bench");
    std::filesystem::path const file = build.parent_path() / "docs/examples/sql" / (query + ".sql");
    return {mallard_command(), "query", folder + "/run.mallard", "--csv", "--file", file};
}

words sites_in_sql(std::string const& folder)
{
    return documented("peak_functions", folder);
}

words peak_in_sql(std::string const& folder)
{
    return documented("exact_peak", folder);
}

/// Compares the recording with itself. This takes as long as a comparison with another run.
words diff(std::string const& folder)
{
    return {mallard_command(), "diff", folder + "/run.mallard", folder + "/run.mallard"};
}

words heaptracks_diff(std::string const& folder)
{
    std::string const run = folder + "/run.zst";
    return {program_path("heaptrack_print", "heaptrack"), "--diff", run, run};
}

words heaptracks_tables(std::string const& folder)
{
    return {program_path("heaptrack_print", "heaptrack"), folder + "/run.zst"};
}

} // namespace

std::vector<reading> readings()
{
    std::shared_ptr<recorder const> const mallards = mallard_record();
    std::shared_ptr<recorder const> const heaptracks = heaptrack(symbols::looked_up);
    reader const printed{"heaptrack-1.4.0/print", heaptracks, heaptracks_tables};
    reader const compared{"heaptrack-1.4.0/diff", heaptracks, heaptracks_diff};
    return {
        {"report",
         "How long a report of a recording takes, compared with heaptrack_print of a recording by "
         "heaptrack",
         {{"mallard/report", mallards, report}, printed}},
        {"query/sites",
         "How long SQL takes to list the functions that hold the peak",
         {{"mallard/query", mallards, sites_in_sql}, printed}},
        {"query/peak",
         "How long SQL takes to find the exact peak among all events",
         {{"mallard/query", mallards, peak_in_sql}, printed}},
        {"diff",
         "How long it takes to compare two recordings, compared with heaptrack_print of two by "
         "heaptrack "
         "files",
         {{"mallard/diff", mallards, diff}, compared}},
    };
}

std::vector<experiment> read_recordings(effort how)
{
    auto const all = std::make_shared<recordings>();
    std::vector<experiment> experiments;
    for (workload const& w : workloads()) {
        if (std::ranges::find(programs, w.name) == programs.end())
            continue;
        for (reading const& question : readings())
            experiments.push_back(asked(question, w, how, all));
    }
    return experiments;
}

} // namespace mallard::bench
