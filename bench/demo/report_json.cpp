#include <bench/demo/report.hpp>

#include <nlohmann/json.hpp>

#include <iostream>

#include <gnu/libc-version.h>

namespace mallard::demo {

namespace {

/// Returns the name of a contender. AS1 and AS2 allocate from the default heap in two ways, so both
/// have the name of the heap.
std::string contender_of(const strategy_entry& strategy)
{
    std::string const maker = strategy.from == family::heap
                                  ? std::string("glibc-") + ::gnu_get_libc_version()
                                  : std::string("mallard");
    return maker + "/" + std::string(strategy.name);
}

nlohmann::ordered_json object_of(const finding& f)
{
    auto const& [s, a] = f;
    auto const& choice = a.choice();
    nlohmann::ordered_json object = {
        {"case", s->words.name},
        {"strategy", choice.strategy->name},
        {"words", choice.strategy->words},
        {"verdict", !a.has_enough_runs() ? "too few runs"
                    : a.chosen == 0      ? "no difference"
                                         : "gain"},
        {"ratio", choice.to_heap.ratio},
        {"memory_ratio", choice.memory_ratio},
        {"runs", s->runs_done()},
        {"lives_per_run", s->rounds},
        {"D", a.measured.density},
        {"V", a.measured.variation},
        {"L", a.measured.locality},
        {"U", a.measured.utilisation},
        {"C", 0},
        {"F", 0},
        {"answer", {{"read", s->says.read}, {"made", s->says.made}, {"found", s->says.found}}},
    };
    for (const auto& [word, sentence] : a.reasons)
        object["reasons"][word] = sentence;
    return object;
}

} // namespace

void print_json(const std::vector<finding>& findings, const session& done, const collection& taken,
                const bench::provenance& run)
{
    nlohmann::ordered_json last = {
        {"recommendation", nlohmann::ordered_json::array()},
        {"text",
         {{"files", taken.files.size()},
          {"bytes", taken.bytes()},
          {"fingerprint", taken.fingerprint()}}},
        {"notes", taken.notes},
        {"interrupted", done.interrupted},
        {"commit", run.commit},
        {"machine", run.machine},
        {"command", run.command},
    };
    for (const auto& f : findings) {
        for (const auto& who : f.advised.standings)
            for (const auto& [metric, figure] :
                 {std::pair("seconds", who.seconds), std::pair("peak_rss_kib", who.peak_kib),
                  std::pair("after_rss_kib", who.after_kib)}) {
                bench::row const row = {.suite = "demo",
                                        .case_name = std::string(f.measured->words.name),
                                        .contender = contender_of(*who.strategy),
                                        .metric = metric,
                                        .figure = figure,
                                        .variant = {},
                                        .why = {}};
                std::cout << bench::to_json(row, run) << '\n';
            }
        last["recommendation"].push_back(object_of(f));
    }
    std::cout << last.dump() << std::endl;
}

} // namespace mallard::demo
