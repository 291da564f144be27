// The suite `replay` measures two costs: the overhead of mallard-replay for each call of a malloc,
// and the cost of compiling a recording into an op stream.
#include <bench/replay/streams.hpp>

#include <bench/suites.hpp>
#include <bench/trace/recorders.hpp>
#include <bench/trace/workloads.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

namespace mallard::bench {
namespace {

constexpr std::size_t ops_of_a_stream = 5'000'000;

std::string build_folder()
{
    return std::filesystem::path(program_folder()).parent_path().parent_path();
}

std::string player()
{
    std::string const path =
        std::filesystem::path(program_folder()).parent_path() / "src/replay/mallard-replay";
    if (access(path.c_str(), X_OK) != 0)
        throw cannot_run("there is no " + path + "; help: start this by ./x bench");
    return path;
}

std::string command()
{
    std::string const path = build_folder() + "/cargo/release/mallard";
    if (access(path.c_str(), X_OK) != 0)
        throw cannot_run("there is no " + path +
                         "; help: install cargo and start this by ./x bench");
    return path;
}

/// An op stream in a temporary directory. The first contender that needs the file makes it.
class op_stream {
public:
    virtual ~op_stream() = default;

    std::string const& path()
    {
        if (path_.empty()) {
            make(folder_, folder_ / "ops");
            path_ = folder_ / "ops";
        }
        return path_;
    }

protected:
    virtual void make(temporary_folder const& folder, std::string const& path) = 0;

private:
    temporary_folder folder_;
    std::string path_;
};

class made_stream final : public op_stream {
public:
    using writer = void (*)(std::string const& path, std::size_t ops);
    made_stream(writer write, std::size_t ops) : write_(write), ops_(ops) {}

private:
    void make(temporary_folder const&, std::string const& path) override { write_(path, ops_); }

    writer write_;
    std::size_t ops_;
};

/// Records a program, and returns the name of the trace.
std::string recorded(workload const& w, temporary_folder const& folder, double share)
{
    std::string const folder_of_trace = folder / "trace";
    std::filesystem::create_directory(folder_of_trace);
    std::unique_ptr<recorder> const with = mallard_record();
    with->insist();
    watched_command(with->record(w.command(folder, share), folder_of_trace)).wait();
    return folder_of_trace + "/run";
}

run_result compiled(std::string const& trace, std::string const& to)
{
    return running_program({command(), "replay", "--quiet", trace, "--write", to}, "").wait();
}

class recorded_stream final : public op_stream {
public:
    recorded_stream(workload w, double share) : workload_(std::move(w)), share_(share) {}

private:
    void make(temporary_folder const& folder, std::string const& path) override
    {
        compiled(recorded(workload_, folder, share_), path);
    }

    workload workload_;
    double share_;
};

/// Replays a stream in a separate process, and stores the figures of the replay in `out`.
void play(op_stream& stream, preload const& with, bool does_nothing, std::span<double> out)
{
    words all{player()};
    if (does_nothing)
        all.emplace_back("--no-op");
    all.push_back(stream.path());
    run_result const run = running_program(all, with.library).wait();
    nlohmann::json const played = nlohmann::json::parse(run.output, nullptr, false);
    if (!played.contains("cpu_seconds") || !played.contains("failures"))
        throw cannot_run("the replayer printed no result");
    if (played["failures"] != 0)
        throw cannot_run("calls fail that succeeded in the program");
    out[0] = played["cpu_seconds"].get<double>() * 1e9 / played["calls"].get<double>();
    out[1] = run.wall_seconds;
    out[2] = run.peak_kib;
}

using shared_stream = std::shared_ptr<op_stream>;

/// Returns a function that makes a stream on its first call. Later calls return the same stream
/// while one of the callers holds it.
std::function<shared_stream()> shared(std::function<shared_stream()> make)
{
    auto const known = std::make_shared<std::weak_ptr<op_stream>>();
    return [known, make = std::move(make)] {
        shared_stream stream = known->lock();
        if (stream == nullptr)
            *known = stream = make();
        return stream;
    };
}

entrant player_of(std::function<shared_stream()> const& stream, std::string const& name,
                  std::function<preload()> const& with, bool does_nothing)
{
    return {.name = [name] { return name; },
            .prepare = [=]() -> round_function {
                preload const p = with();
                if (!p.why.empty())
                    throw cannot_run(p.why);
                player();
                shared_stream const here = stream();
                here->path();
                return [here, p, does_nothing](std::span<double> out) {
                    play(*here, p, does_nothing, out);
                };
            }};
}

experiment played(std::string const& name, std::string const& asks, int threads,
                  std::function<shared_stream()> make, effort how)
{
    experiment e{.asks = asks, .figures = {}, .entrants = {}, .rounds = 9, .with_memory = false};
    e.once = how.is_smoke();
    for (const char* const metric : {"ns_per_op", "seconds", "peak_rss_kib"})
        e.figures.push_back({name, metric, "", threads});
    std::function<shared_stream()> const stream = shared(std::move(make));
    e.entrants.push_back(player_of(stream, "limit/no-op", [] { return preload{}; }, true));
    for (preload const& p : preloads())
        e.entrants.push_back(player_of(stream, p.name, [p] { return p; }, false));
    return e;
}

/// Measures the time and the memory that the command takes to compile a recording.
experiment compiling(workload const& w, double share, effort how)
{
    experiment e{.asks = "How long does it take to make an op stream of the recording of " +
                         w.name + "?",
                 .figures = {},
                 .entrants = {},
                 .rounds = 9,
                 .with_memory = false};
    e.once = how.is_smoke();
    for (const char* const metric : {"seconds", "cpu_seconds", "peak_rss_kib"})
        e.figures.push_back({"compile/" + w.name, metric, "", w.threads});
    e.entrants.push_back({.name = [] { return "mallard/replay"; },
                          .prepare = [w, share]() -> round_function {
                              command();
                              auto const folder = std::make_shared<temporary_folder>();
                              std::string const trace = recorded(w, *folder, share);
                              return [folder, trace](std::span<double> out) {
                                  run_result const run = compiled(trace, *folder / "ops");
                                  out[0] = run.wall_seconds;
                                  out[1] = run.cpu_seconds;
                                  out[2] = run.peak_kib;
                              };
                          }});
    return e;
}

/// Returns the programs whose recordings are compiled and replayed.
std::vector<workload> recorded_programs()
{
    std::vector<workload> all = workloads();
    std::erase_if(all, [](workload const& w) {
        return w.name != "perl" && w.name != "cc1plus" && w.name != "threads/T2";
    });
    return all;
}

} // namespace

std::vector<experiment> replay_suite(effort how)
{
    std::size_t const ops = how.is_smoke() ? 2000 : ops_of_a_stream;
    double const share = how.is_smoke() ? 0.005 : how.is_brief() ? 0.15 : 1;
    auto const made = [ops](made_stream::writer write) {
        return [=] { return std::make_shared<made_stream>(write, ops); };
    };
    std::vector<experiment> all{
        played("one-thread/regular", "Ten blocks are allocated and freed in turn, 5 million calls",
               1, made(write_regular), how),
        played("one-thread/random", "Random blocks of 10,000 are replaced, 5 million calls", 1,
               made(write_random), how),
        played("two-threads/edges", "Two threads free the blocks of each other, 5 million calls", 2,
               made(write_edges), how)};
    for (workload const& w : recorded_programs()) {
        all.push_back(played(
            "recorded/" + w.name, "The calls of " + w.name, w.threads,
            [w, share] { return std::make_shared<recorded_stream>(w, share); }, how));
        all.push_back(compiling(w, share, how));
        for (std::size_t i = all.size() - 2; i < all.size(); ++i)
            all[i].in_brief = w.in_brief;
    }
    return all;
}

} // namespace mallard::bench
