// The trace suite measures what it costs to record every allocation of a program, for the program
// and for the machine, and to read the recording.
#include <bench/entrants.hpp>
#include <bench/suites.hpp>
#include <bench/trace/reading.hpp>
#include <bench/trace/recorders.hpp>
#include <bench/trace/workloads.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>

namespace mallard::bench {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double bytes_in(std::filesystem::path const& folder)
{
    double bytes = 0;
    for (auto const& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file())
            bytes += static_cast<double>(entry.file_size());
    }
    return bytes;
}

/// A program, and its output and number of calls without a recorder. The program is prepared on
/// first use.
class stage {
public:
    stage(workload w, double share) : workload_(std::move(w)), share_(share) {}

    void run(recorder const& with, std::span<double> out)
    {
        if (command_.empty())
            prepare();
        std::string const folder = folder_ / "record";
        if (with.is_silent() && !lost_.contains(&with))
            lost_[&with] = count_beside(with, folder);
        watched_result const result = record(with, command_, folder);
        double const bytes = bytes_in(folder);
        std::optional<double> const lost =
            with.is_silent() ? lost_[&with] + with.admitted(folder) : with.lost(calls_, folder);
        watched_result table;
        words const first_table = with.first_table(command_, folder);
        if (!first_table.empty())
            table = watched_command({first_table, {}}).wait();
        bool const is_bare = &with == &bare();
        out[0] = result.cpu_seconds;
        out[1] = is_bare || !first_table.empty() ? result.all_cpu_seconds + table.all_cpu_seconds
                                                 : unknown;
        out[2] = result.seconds;
        out[3] = first_table.empty() ? unknown : result.all_seconds + table.all_seconds;
        out[4] = is_bare ? unknown : bytes / static_cast<double>(calls_.allocations + calls_.frees);
        out[5] = lost.value_or(unknown);
        out[6] = result.peak_kib;
        out[7] = is_bare ? unknown : std::max(result.other_peak_kib, table.other_peak_kib);
    }

private:
    watched_result run(recording_command const& command)
    {
        watched_command running(command);
        if (workload_.ask == nullptr)
            return running.wait();
        run_result const asked = workload_.ask(folder_, share_);
        watched_result result = running.wait();
        result.output += asked.output;
        result.seconds = asked.wall_seconds;
        return result;
    }

    watched_result record(recorder const& with, words const& command, std::string const& folder)
    {
        std::filesystem::remove_all(folder);
        std::filesystem::create_directory(folder);
        watched_result result = run(with.record(command, folder));
        if (result.output.find(expected_) == std::string::npos)
            throw cannot_run("the program prints other output than without it");
        if (result.cpu_seconds == 0)
            throw cannot_run("it did not start the program");
        return result;
    }

    void prepare()
    {
        words const command = workload_.command(folder_, share_);
        expected_ = run(bare().record(counting(command), "")).output;
        calls_ = counted();
        command_ = command;
    }

    /// Runs the program once more with the recorder and the library in count.c, which counts the
    /// calls. Returns the number of calls that the recorder lost in this run.
    double count_beside(recorder const& with, std::string const& folder)
    {
        record(with, counting(command_), folder);
        return with.lost(counted(), folder).value_or(unknown);
    }

    /// Returns a command that also counts the calls of the program.
    words counting(words const& command) const
    {
        words all{"MALLARD_BENCH_PROGRAM=" + bare().record(command, "").program.front(),
                  "MALLARD_BENCH_COUNT=" +
                      folder_.write("calls", std::string(sizeof(call_counts), '\0')),
                  "LD_PRELOAD=" + program_folder() + "/libmallard-bench-count.so"};
        all.insert(all.end(), command.begin(), command.end());
        return all;
    }

    call_counts counted() const
    {
        call_counts counts{};
        std::ifstream(folder_ / "calls", std::ios::binary)
            .read(reinterpret_cast<char*>(&counts), sizeof counts);
        if (counts.allocations == 0)
            throw cannot_run("no call was counted: its malloc cannot be replaced");
        return counts;
    }

    workload workload_;
    double share_;
    temporary_folder folder_;
    words command_;
    std::string expected_;
    call_counts calls_{};
    std::map<recorder const*, double> lost_;
};

using recorders = std::vector<std::shared_ptr<recorder const>>;

experiment recorded(workload const& w, std::string const& variant, recorders const& all, effort how)
{
    std::string const name = variant.empty() ? w.name : w.name + "/" + variant;
    experiment e{.asks = w.asks, .figures = {}, .entrants = {}, .rounds = 5, .with_memory = false};
    e.in_brief = w.in_brief && variant.empty();
    e.once = how.is_smoke();
    for (const char* const metric :
         {"cpu_seconds", "tree_cpu_seconds", "seconds", "seconds_to_answer", "bytes_per_event",
          "events_lost", "peak_rss_kib", "recorder_rss_kib"})
        e.figures.push_back({name, metric, "", w.threads});
    // Makes the directory only when the first contender is prepared.
    auto const shared = std::make_shared<std::weak_ptr<stage>>();
    for (std::shared_ptr<recorder const> const& with : all) {
        e.entrants.push_back({.name = [with] { return with->name(); },
                              .prepare = [with, w, how, shared]() -> round_function {
                                  with->insist();
                                  if (how.is_brief() && with->is_slow())
                                      throw cannot_run("it takes 40 times as long as the program;"
                                                       " help: leave out --short");
                                  std::shared_ptr<stage> here = shared->lock();
                                  if (here == nullptr)
                                      *shared = here = std::make_shared<stage>(w, share_of(how));
                                  return [with, here](std::span<double> out) {
                                      here->run(*with, out);
                                  };
                              },
                              .why_unknown = with->lacks()});
    }
    return e;
}

} // namespace

std::vector<experiment> trace_suite(effort how)
{
    std::shared_ptr<recorder const> const nobody(&bare(), [](recorder const*) {});
    std::shared_ptr<recorder const> const raw = heaptrack(symbols::left_out);
    recorders const usual{nobody, mallard_record(), heaptrack(symbols::looked_up), raw,
                          heap_profiler()};
    recorders in_python = usual;
    in_python.push_back(memray());
    std::vector<experiment> all;
    for (workload const& w : workloads()) {
        all.push_back(recorded(w, "", w.is_python ? in_python : usual, how));
        if (!w.has_variants)
            continue;
        all.push_back(recorded(w, "no-free-stacks",
                               {nobody, mallard_record({"--no-free-stacks"}), raw}, how));
        all.push_back(
            recorded(w, "no-stacks", {nobody, mallard_record({"--stacks", "none"})}, how));
    }
    std::ranges::move(read_recordings(how), std::back_inserter(all));
    return all;
}

} // namespace mallard::bench
