// mallard-demo recommends an allocation strategy for each of three workloads on real text, measured
// on this machine.
#include <bench/demo/child.hpp>
#include <bench/demo/error.hpp>
#include <bench/demo/report.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>

namespace {

using namespace mallard;
using namespace mallard::demo;

constexpr std::size_t runs_by_default = 25;
constexpr double seconds_by_default = 100;
constexpr int status_of_bad_use = 2, status_of_interrupt = 130;

struct arguments {
    std::vector<std::string> files;
    bool json = false;
    std::size_t runs = 0; // 0: the default number, or fewer if time is short
    std::vector<std::string> cell;
};

void describe(CLI::App& app, arguments& asked)
{
    app.add_option("FILE", asked.files,
                   "Text, source or .json, or directories of it; default: text of this machine")
        ->type_name("");
    app.add_flag("--json", asked.json,
                 "Benchmark rows, one JSON object a line, and the recommendation as the last");
    app.add_option(
           "--runs", asked.runs,
           "Runs of every workload under every strategy (25, or as many as 100 seconds allow)")
        ->type_name("N")
        ->check(CLI::Range(1, 1000));
    app.add_option("--cell", asked.cell)->expected(4)->group("");
}

int run(const arguments& asked, const bench::provenance& origin)
{
    interrupts const noted; // Ctrl-C now ends the measurement only; a report follows
    plan const wanted = {.runs = asked.runs == 0 ? runs_by_default : asked.runs,
                         .seconds_max = asked.runs == 0 ? seconds_by_default : 0};
    collection const taken = asked.files.empty() ? collect_default() : collect_named(asked.files);
    if (!asked.json)
        print_opening(taken, origin);
    session const done = measure_all(share(taken), wanted);

    std::vector<finding> findings;
    for (const auto& s : done.all)
        if (!s.runs.front().empty())
            findings.push_back({&s, advise(s)});
    if (asked.json) {
        print_json(findings, done, taken, origin);
    } else {
        for (const auto& f : findings)
            print_finding(f);
        print_closing(findings, done, wanted.runs);
    }
    return done.interrupted ? status_of_interrupt : 0;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app(
        "Runs a word index, a parse tree and a sliding window of phrases over real text, under\n"
        "each of the 14 allocation strategies of Lakos's talk; checks that all give the same\n"
        "answer; then says which to take, and why, in the words of D V L U C F.\n"
        "Under two minutes.",
        "mallard-demo");
    arguments asked;
    describe(app, asked);
    try {
        app.parse(argc, argv);
        if (!asked.cell.empty())
            return run_cell(asked.cell);
        return run(asked, bench::describe_run("./x demo", argc, argv));
    } catch (const CLI::CallForHelp& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& error) {
        std::string what = error.what();
        std::fprintf(stderr,
                     "mallard-demo: %s\n  nothing was measured\n  help: `./x demo --help` says "
                     "what it takes\n",
                     what.substr(0, what.find('\n')).c_str());
        return status_of_bad_use;
    } catch (const failure& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    } catch (const std::exception& error) { // for example out of memory
        std::fprintf(
            stderr,
            "mallard-demo: %s\n  the measurement stopped\n  help: try fewer or smaller files\n",
            error.what());
        return 1;
    }
}
