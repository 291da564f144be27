#include <bench/demo/session.hpp>

#include <bench/demo/child.hpp>
#include <bench/demo/error.hpp>
#include <bench/progress.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace mallard::demo {

namespace {

constexpr double cell_seconds_max = 300;
constexpr double cell_seconds_wanted = 0.05; // a shorter measurement is repeated
constexpr std::uint64_t rounds_max = 1000;

std::string name_of(int strategy)
{
    if (strategy == counted::number)
        return std::string(counted::name);
    auto const& entry = strategies()[static_cast<std::size_t>(strategy - 1)];
    return std::string(entry.name) + " (" + std::string(entry.words) + ")";
}

std::string text_of(const workload_words& words, const answer& a)
{
    char checksum[17];
    std::snprintf(checksum, sizeof checksum, "%016llx",
                  static_cast<unsigned long long>(a.checksum));
    return std::to_string(a.read) + " " + std::string(words.read) + ", " + std::to_string(a.made) +
           " " + std::string(words.made) + ", " + std::to_string(a.found) + " " +
           std::string(words.found) + ", checksum " + checksum;
}

/// Thrown when the user interrupts the measurement. Finished runs are kept.
struct was_interrupted {};

class runner {
public:
    runner(int text_descriptor, const plan& wanted)
        : text_(text_descriptor), plan_(wanted),
          progress_(static_cast<double>(workloads().size() * (2 + wanted.runs * strategy_count)))
    {
    }

    session run()
    {
        try {
            for (const auto& workload : workloads())
                result_.all.push_back(prepare(workload.words));
            for (std::size_t run = 0; run < plan_.runs && !is_late(run); ++run)
                for (auto& s : result_.all)
                    for (std::size_t i = 0; i < strategy_count; ++i)
                        add_run(s, run, (i + run) % strategy_count);
        } catch (const was_interrupted&) {
            result_.interrupted = true;
        }
        return std::move(result_);
    }

private:
    /// Does one run that counts allocations. Then does one run under AS1 (the default heap) to find
    /// out how long the structure exists.
    series prepare(const workload_words& words)
    {
        series s = {.words = words};
        auto const on_books = cell(s, counted::number, "counting allocations");
        s.says = on_books.says;
        s.counts = on_books.counts.value();
        auto const first = cell(s, 1, "first look");
        auto const lives = cell_seconds_wanted / std::max(first.seconds(), 1e-9);
        s.rounds = std::clamp(static_cast<std::uint64_t>(lives), std::uint64_t{1}, rounds_max);
        return s;
    }

    void add_run(series& s, std::size_t run, std::size_t index)
    {
        auto const& strategy = strategies()[index];
        char what[64];
        std::snprintf(what, sizeof what, "run %zu of %zu, %s", run + 1, plan_.runs,
                      strategy.name.data());
        s.runs[index].push_back(cell(s, strategy.number, what));
    }

    measurement cell(const series& s, int strategy, const std::string& what)
    {
        progress_.say(std::string(s.words.name) + ", " + what);
        auto const done =
            run_self(std::array<std::string, 6>{"mallard-demo", "--cell", std::string(s.words.name),
                                                std::to_string(strategy), std::to_string(s.rounds),
                                                std::to_string(text_)},
                     cell_seconds_max);
        progress_.advance(1);
        if (done.interrupted)
            throw was_interrupted();
        if (!done.is_good())
            throw failure(
                std::string(s.words.name) + " under " + name_of(strategy) + " " + done.why(),
                done.err.empty() ? "it said nothing; its figures would be worth nothing"
                                 : "its words: " + done.err.substr(0, done.err.find('\n')),
                "`./x test strategy` checks the strategies one by one");
        auto const m = from_line(done.out);
        if (strategy != counted::number)
            expect_same(s.words, s.says, counted::name, m.says, name_of(strategy));
        return m;
    }

    bool is_late(std::size_t run)
    {
        auto const seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
        // Stops before a run that would end too late. Assumes that it takes as long as the mean of
        // the earlier runs.
        result_.out_of_time = plan_.seconds_max > 0 && run > 0 &&
                              seconds + seconds / static_cast<double>(run) > plan_.seconds_max;
        return result_.out_of_time;
    }

    int text_;
    plan plan_;
    bench::progress progress_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    session result_;
};

} // namespace

session measure_all(int text_descriptor, const plan& wanted)
{
    return runner(text_descriptor, wanted).run();
}

void expect_same(const workload_words& words, const answer& expected, std::string_view expected_of,
                 const answer& now, std::string_view now_of)
{
    if (now != expected)
        throw failure(
            "the " + std::string(words.name) + " gave another answer under " + std::string(now_of),
            std::string(expected_of) + ": " + text_of(words, expected) + "; " +
                std::string(now_of.substr(0, now_of.find(' '))) + ": " + text_of(words, now),
            "a strategy lost or changed data: `./x test strategy` checks them one by one");
}

int run_cell(const std::vector<std::string>& request)
{
    auto const text = open_shared(std::stoi(request.at(3)));
    for (const auto& workload : workloads())
        if (workload.words.name == request.at(0)) {
            auto const line = to_line(
                workload.measure(std::stoi(request.at(1)), std::stoull(request.at(2)), text));
            std::puts(line.c_str());
            return 0;
        }
    return 2;
}

} // namespace mallard::demo
