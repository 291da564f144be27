// The suite demo runs a word index, a parser and an ordered map over real text, under each of the
// fourteen strategies of J. Lakos (ACCU 2017).
#include <bench/demo/cell.hpp>
#include <bench/demo/error.hpp>
#include <bench/demo/strategies.hpp>
#include <bench/preload/contenders.hpp>
#include <bench/preload/process.hpp>
#include <bench/programs/run.hpp>
#include <bench/suites.hpp>

#include <gnu/libc-version.h>

#include <memory>
#include <optional>

namespace mallard::bench {
namespace {

using demo::measurement;

constexpr std::size_t runs_in_full = 25;
constexpr double seconds_wanted = 0.05; // a shorter measurement is repeated
constexpr std::uint64_t rounds_max = 1000;
constexpr int patience_ms = 300'000;
constexpr std::size_t smoke_bytes = 1 << 16;

/// Parses the output of a mallard-bench-demo process. Throws `cannot_run`.
measurement heard(process& cell)
{
    std::string const said = cell.read_all();
    if (int const status = cell.wait(); status != 0)
        throw cannot_run("FAIL: its process ended with " + described(status));
    return demo::from_line(said);
}

/// A workload with its text. Both are prepared on first use.
class stage {
public:
    stage(std::string workload, effort how) : workload_(std::move(workload)), how_(how) {}

    std::unique_ptr<process> start(int strategy)
    {
        if (rounds_ == 0)
            prepare();
        return launch(strategy, rounds_);
    }

    bool is_right(const measurement& m) const { return m.says == expected_; }

private:
    void prepare()
    {
        auto const bytes = how_.is_smoke() ? smoke_bytes : demo::default_bytes_max;
        folder_.emplace();
        try {
            demo::save(demo::collect_default(bytes), *folder_ / "text");
        } catch (const demo::failure& error) {
            throw cannot_run(error.what());
        }
        expected_ = heard(*launch(demo::counted::number, 1)).says;
        double const seconds = heard(*launch(1, 1)).seconds();
        auto const wanted = static_cast<std::uint64_t>(seconds_wanted / std::max(seconds, 1e-9));
        rounds_ = how_.is_smoke() ? 1 : std::clamp(wanted, std::uint64_t{1}, rounds_max);
    }

    std::unique_ptr<process> launch(int strategy, std::uint64_t rounds) const
    {
        std::vector<std::string> const command{program_folder() + "/demo/mallard-bench-demo",
                                               workload_, std::to_string(strategy),
                                               std::to_string(rounds), *folder_ / "text"};
        return std::make_unique<process>(command, "", process::complaints::shown, patience_ms);
    }

    std::string workload_;
    effort how_;
    std::optional<temporary_folder> folder_;
    demo::answer expected_{};
    std::uint64_t rounds_ = 0; // how often a process builds the structure; 0 means not prepared
};

/// Returns the name of a contender. AS1 and AS2 allocate from the default heap, through different
/// bindings, so both have the name of the heap.
std::string contender_of(const demo::strategy_entry& strategy)
{
    std::string const maker = strategy.from == demo::family::heap
                                  ? std::string("glibc-") + gnu_get_libc_version()
                                  : std::string("mallard");
    return maker + "/" + std::string(strategy.name);
}

child_result result_of(stage const& on, process& cell)
try {
    measurement const m = heard(cell);
    if (!on.is_right(m))
        return {.why = "FAIL: it gives another answer than the default heap"};
    return {.figures = {m.seconds(), static_cast<double>(m.peak_rss_kib),
                        static_cast<double>(m.after_rss_kib)}};
} catch (cannot_run const& reason) {
    return {.why = reason.what()};
}

pending_result start(std::shared_ptr<stage> const& on, int strategy)
try {
    std::shared_ptr<process> const cell = on->start(strategy);
    return [on, cell] { return result_of(*on, *cell); };
} catch (cannot_run const& reason) {
    return [why = std::string(reason.what())] { return child_result{.why = why}; };
}

experiment under_each_strategy(demo::workload_entry const& workload, effort how)
{
    std::string const name(workload.words.name);
    experiment e{.asks = std::string(workload.words.type) +
                         " over text of this machine: built, used and destroyed",
                 .figures = {{name, "seconds"}, {name, "peak_rss_kib"}, {name, "after_rss_kib"}},
                 .entrants = {},
                 .rounds = runs_in_full,
                 .fresh_process = true,
                 .with_memory = false};
    auto const on = std::make_shared<stage>(name, how);
    for (auto const& strategy : demo::strategies())
        e.entrants.push_back(
            {.name = [&strategy] { return contender_of(strategy); },
             .prepare = nullptr,
             .start_alone = [on, number = strategy.number] { return start(on, number); }});
    return e;
}

} // namespace

std::vector<experiment> demo_suite(effort how)
{
    std::vector<experiment> all;
    for (auto const& workload : demo::workloads())
        all.push_back(under_each_strategy(workload, how));
    return all;
}

} // namespace mallard::bench
