// mallard-bench runs every suite with every contender.
#include <bench/calibration/programs.hpp>
#include <bench/clock.hpp>
#include <bench/keeper.hpp>
#include <bench/report.hpp>
#include <bench/standings.hpp>
#include <bench/suites.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <regex>

namespace {

using namespace mallard::bench;

constexpr suite suites[] = {
    {"pool", "What do blocks of one size cost?", pool_suite},
    {"arena", "What do blocks cost that are freed together?", arena_suite},
    {"multipool", "What do blocks of many sizes cost?", multipool_suite},
    {"heap", "What does it cost to create an allocator, fill it, and free all blocks together?",
     heap_suite, 2},
    {"threads", "What do blocks cost that several threads allocate and free?", threads_suite, 8},
    {"typed", "What do objects cost, with handles, keys and memory of special kinds?", typed_suite},
    {"malloc", "What do malloc and free cost, in each implementation?", malloc_suite, 10},
    {"programs", "Does the choice of a malloc matter for a whole program?", programs_suite, 5},
    {"rss", "How much memory does a malloc hold, and for how long?", rss_suite, 5},
    {"demo", "Which strategy for a word index, a parser and an ordered map over real text?",
     demo_suite, 3},
    {"trace", "What does it cost to record every allocation of a program?", trace_suite, 40},
    {"replay", "What does the replayer of recorded calls add to their cost?", replay_suite, 15},
    {"seeds", "What do the benchmarks of Mallard's predecessors show on this machine?", seeds_suite,
     12},
    {"lakos1", "Lakos's Benchmark I: which strategy for which data structure?", lakos1_suite, 900},
    {"lakos2", "Lakos's Benchmark II: what do elements cost that move between subsystems?",
     lakos2_suite, 15000},
    {"lakos3", "Lakos's Benchmark III: what if blocks are freed and allocated again?", lakos3_suite,
     240},
    {"lakos4", "Lakos's Benchmark IV: what if threads allocate at the same time?", lakos4_suite,
     180},
    {"lakos5", "What if the heap is fragmented before the start?", lakos5_suite, 300},
};

// The suites whose contenders are ranked by all results. In these suites, each contender runs every
// case.
constexpr std::string_view ranked[] = {"malloc", "programs", "rss"};

struct arguments {
    std::vector<std::string> names;
    selection chosen;
    effort how;
    bool json = false;
    bool list = false;
    std::string keep;
    std::string child_task;
};

/// Returns the reason why `text` is not a regular expression, or an empty string if it is one.
std::string why_no_pattern(std::string const& text)
{
    try {
        std::regex const pattern(text);
    } catch (std::regex_error const& error) {
        return text + " is not a regular expression: " + error.what();
    }
    return {};
}

int parse(int argc, char** argv, arguments& asked)
{
    CLI::App app("Measures Mallard and its competitors in one run; lower is better.\n"
                 "Times are ns of CPU time; in threads, ns_per_op is wall time / operations of\n"
                 "all threads, and cpu_ns_per_op CPU time / operations. peak_rss_kib and\n"
                 "after_rss_kib come from a separate process for each competitor: peak memory,\n"
                 "and memory still held after every block was freed and the allocator was\n"
                 "destroyed, without what the process held before and without the harness's\n"
                 "arrays; in threads, stacks are part of it, 10 to 30 KiB a thread. In malloc,\n"
                 "programs and rss, each competitor is loaded into separate processes, and\n"
                 "memory is all that such a process holds, less the harness's arrays:\n"
                 "after_rss_kib when all is freed, idle_rss_kib a second later.");
    std::vector<std::string> known;
    for (suite const& s : suites)
        known.emplace_back(s.name);
    bool brief = false;
    bool smoke = false;
    app.add_option("SUITE", asked.names, "What to run")->check(CLI::IsMember(known));
    app.add_flag("--short", brief, "At most 50 seconds a suite: fewer rounds, fewer cases");
    app.add_flag("--json", asked.json, "One JSON object a line instead of tables");
    app.add_option("--case", asked.chosen.case_pattern, "Only cases that match this")
        ->type_name("REGEX")
        ->check(why_no_pattern);
    app.add_option("--variant", asked.chosen.variant_pattern,
                   "Only variants that match this: faithful, corrected, ...")
        ->type_name("REGEX")
        ->check(why_no_pattern);
    app.add_option("--contender", asked.chosen.contender_pattern,
                   "Only competitors that match this")
        ->type_name("REGEX")
        ->check(why_no_pattern);
    app.add_option("--keep", asked.keep,
                   "Adds the results to this file, and skips those that it has already")
        ->type_name("FILE");
    app.add_option("--less", asked.how.less,
                   "2^N times less work in each cell of the lakos suites: 5 makes the "
                   "whole of lakos1 take an hour or two")
        ->type_name("N")
        ->check(CLI::Range(0, 12));
    app.add_option("--runs", asked.chosen.rounds, "Rounds of each case")->type_name("N");
    app.add_flag("--list", asked.list, "List the cases, and the question that each answers");
    app.add_flag("--smoke", smoke, "Run every case once and quickly, to check that it works");
    app.add_option("--child", asked.child_task)->group("");
    CLI11_PARSE(app, argc, argv);
    if (brief)
        asked.how.kind = effort::size::brief;
    if (smoke)
        asked.how.kind = effort::size::smoke;
    if (asked.names.empty() && !asked.list && asked.child_task.empty()) {
        std::fputs("mallard-bench: no suite was named\n"
                   "  nothing was run\n"
                   "  help: `mallard-bench pool --short`, or `mallard-bench --list`\n",
                   stderr);
        return 2;
    }
    return -1; // continue with the run
}

bool is_asked(suite const& s, arguments const& asked)
{
    return asked.names.empty() || std::ranges::find(asked.names, s.name) != asked.names.end();
}

void print_origin(provenance const& origin)
{
    std::printf("%s\ncommit %s; the time-stamp counter moves by %.1f ns; ", origin.machine.c_str(),
                origin.commit.c_str(), ns_of_a_step());
    if (auto const cycles = cycles_per_ns())
        std::printf("a ns is %.2f cycles\n", *cycles);
    else
        std::printf("no figures in cycles: %s\n", no_cycles);
}

int run_all(arguments& asked, provenance const& origin)
{
    std::optional<keeper> const kept =
        asked.keep.empty() ? std::nullopt : std::optional<keeper>(asked.keep);
    if (kept)
        asked.chosen.is_kept = [&](auto suite, figure const& f, std::string const& contender) {
            return kept->has(suite, f, contender);
        };
    if (!asked.json)
        print_origin(origin);
    if (kept && origin.commit.ends_with("-dirty")) {
        std::fputs("mallard-bench: the tree has uncommitted changes\n"
                   "  the results are saved and marked -dirty; `./x bench report` omits them\n"
                   "  help: commit first, if you want them in the report\n",
                   stderr);
    }
    losses behind;
    std::size_t rows_printed = 0;
    for (suite const& s : suites) {
        if (!is_asked(s, asked))
            continue;
        bool const is_ranked = std::ranges::find(ranked, s.name) != std::end(ranked);
        standings ranks;
        run(s, asked.how, asked.chosen, [&](experiment const& e, std::vector<row> const& rows) {
            rows_printed += rows.size();
            if (kept)
                kept->add(rows, origin);
            ranks.add(rows);
            if (asked.json) {
                print_json(rows, origin);
                return;
            }
            print_tables(e.asks, rows);
            behind.add(rows, is_ranked);
        });
        if (!is_ranked)
            continue;
        if (asked.json)
            print_json(ranks.rows(s.name), origin);
        else
            ranks.print();
    }
    behind.print();
    if (rows_printed == 0 && kept && !kept->empty()) {
        std::fprintf(stderr, "mallard-bench: %s has all results already\n", asked.keep.c_str());
        return 0;
    }
    if (rows_printed == 0) {
        std::fputs("mallard-bench: no case and competitor match\n"
                   "  nothing was run\n"
                   "  help: `mallard-bench --list` shows the cases\n",
                   stderr);
        return 2;
    }
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc > 1 && std::string_view(argv[1]) == "commands") // called by bench/calibration/run.py
        return print_commands(std::span(argv + 2, argv + argc));
    arguments asked;
    if (int const status = parse(argc, argv, asked); status >= 0)
        return status;
    if (!asked.child_task.empty())
        return run_child(suites, asked.how, asked.child_task);
    if (asked.list) {
        for (suite const& s : suites) {
            if (is_asked(s, asked))
                list(s, asked.chosen);
        }
        return 0;
    }
    try {
        return run_all(asked, describe_run("./x bench", argc, argv));
    } catch (keeper::refused const& reason) {
        std::fprintf(stderr, "%s\n", reason.what());
        return 2;
    }
}
