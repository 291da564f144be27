#include <bench/report.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <set>
#include <tuple>

namespace mallard::bench {
namespace {

// The case, variant and metric of one table. Tables are printed in the order of their first
// results.
using heading = std::tuple<std::string, std::string, std::string>;

heading heading_of(row const& r)
{
    return {r.case_name, r.variant, r.metric};
}

// Metrics that are printed as further columns next to a metric of time.
constexpr std::pair<const char*, const char*> columns[] = {
    {"peak_rss_kib", "peak KiB"},   {"after_rss_kib", "after KiB"},
    {"idle_rss_kib", "idle KiB"},   {"recorder_rss_kib", "recorder KiB"},
    {"remote_percent", "remote %"}, {"page_faults", "faults/1000"}};

bool is_beside(row const& r)
{
    return std::ranges::any_of(columns, [&](auto const& c) { return r.metric == c.first; });
}

bool is_memory(row const& r)
{
    return r.metric.ends_with("_rss_kib");
}

bool is_peak(row const& r)
{
    return r.metric == "peak_rss_kib";
}

bool is_curve(row const& r)
{
    return r.metric == "rss_kib";
}

bool is_cost(row const& r)
{
    return !is_beside(r) && !is_curve(r);
}

bool is_cost_or_memory(row const& r)
{
    return is_cost(r) || is_memory(r);
}

std::vector<std::vector<row>> by_heading(std::vector<row> const& rows, bool (*wanted)(row const&))
{
    std::vector<std::vector<row>> groups;
    std::map<heading, std::size_t> place;
    for (row const& r : rows) {
        if (!wanted(r))
            continue;
        auto const [found, is_new] = place.emplace(heading_of(r), groups.size());
        if (is_new)
            groups.emplace_back();
        groups[found->second].push_back(r);
    }
    return groups;
}

double median_or(row const& r, double otherwise)
{
    return r.figure ? r.figure->median : otherwise;
}

std::string beside(std::vector<row> const& rows, row const& r, const char* metric)
{
    for (row const& other : rows) {
        if (other.case_name == r.case_name && other.variant == r.variant &&
            other.contender == r.contender && other.metric == metric)
            return std::to_string(static_cast<long>(median_or(other, 0)));
    }
    return "";
}

std::string number(double value)
{
    char text[32];
    std::snprintf(text, sizeof text,
                  value < 1      ? "%.3f"
                  : value < 10   ? "%.2f"
                  : value < 1000 ? "%.1f"
                                 : "%.0f",
                  value);
    return text;
}

std::string ratio(double value, const char* unit)
{
    return value > 0 ? number(value) + unit : "";
}

void print_table(std::vector<row> group, std::vector<row> const& rows)
{
    // Compares with the first of several glibc results. In the lakos suites that is AS1.
    auto const baseline =
        std::ranges::find_if(group, [](row const& r) { return r.contender.starts_with("glibc"); });
    double const glibc = baseline == group.end() ? 0 : median_or(*baseline, 0);
    std::ranges::stable_sort(group, {}, [](row const& r) { return median_or(r, 1e300); });
    double const best = median_or(group.front(), 0);
    auto const [name, variant, metric] = heading_of(group.front());
    std::printf("\n%s%s%s   %s\n", name.c_str(), variant.empty() ? "" : ", ", variant.c_str(),
                metric.c_str());
    std::printf("  %-38s %9s %19s %9s %8s", "", "median", "low - high", "glibc/it", "it/best");
    std::vector<const char*> shown;
    for (auto const& [of, title] : columns) {
        if (of == metric || beside(rows, group.front(), of).empty())
            continue;
        shown.push_back(of);
        std::printf(" %12s", title);
    }
    std::printf("\n");
    for (row const& r : group) {
        if (!r.figure) {
            std::printf("  %-38s         -  %s\n", r.contender.c_str(), r.why.c_str());
            continue;
        }
        std::string const range = number(r.figure->low) + " - " + number(r.figure->high);
        std::printf("  %-38s %9s %19s %9s %8s", r.contender.c_str(),
                    number(r.figure->median).c_str(), range.c_str(),
                    ratio(glibc / r.figure->median, "x").c_str(),
                    ratio(r.figure->median / best, "").c_str());
        for (const char* const of : shown)
            std::printf(" %12s", beside(rows, r, of).c_str());
        std::printf("\n");
    }
}

// Prints a line for each moment, with a column for each contender.
void print_curve(std::vector<std::vector<row>> const& moments)
{
    if (moments.empty())
        return;
    std::printf("\n%s   KiB held\n%10s", moments[0][0].case_name.c_str(), "");
    for (row const& r : moments[0])
        std::printf("%24s", r.contender.c_str());
    for (std::vector<row> const& moment : moments) {
        std::printf("\n  %-8s", moment[0].variant.c_str());
        for (row const& r : moment)
            std::printf("%24s", r.figure ? number(r.figure->median).c_str() : "-");
    }
    std::printf("\n");
}

// Returns the kind of a contender: a strategy of Lakos (ACCU 2017), a malloc, a recorder, or a
// local allocator. Returns an empty string for a hand-written lower bound, and for a contender that
// was tuned for its case. crates/bench-report/src/rows/matching.rs defines the same kinds.
std::string kind_of(std::string const& contender)
{
    for (const char* const tuned : {"+fifo", "+reset", "+largest=", "/huge-pages", "/doubling"}) {
        if (contender.find(tuned) != std::string::npos)
            return {};
    }
    if (contender.starts_with("limit/"))
        return {};
    if (std::size_t const at = contender.rfind("/AS"); at != std::string::npos)
        return contender.substr(at, contender.find('+', at) - at);
    for (const char* const recorder :
         {"mallard/record", "heaptrack-", "memray-", "gperftools-2.10/heap-profiler"}) {
        if (contender.starts_with(recorder))
            return "recorder";
    }
    for (const char* const malloc : {"glibc-", "mallard/malloc", "mimalloc-", "jemalloc-",
                                     "gperftools-", "google-tcmalloc-", "snmalloc-", "rpmalloc-"}) {
        if (contender.starts_with(malloc))
            return contender.ends_with("/heap") ? "local" : "malloc";
    }
    return "local";
}

row const* best_of(std::vector<row> const& group, bool ours, std::string const& kind)
{
    row const* best = nullptr;
    for (row const& r : group) {
        bool const is_ours = r.contender.starts_with("mallard/");
        bool const competes = r.figure && kind_of(r.contender) == kind;
        if (competes && is_ours == ours &&
            (best == nullptr || r.figure->median < best->figure->median))
            best = &r;
    }
    return best;
}

} // namespace

void print_tables(std::string const& asks, std::vector<row> const& rows)
{
    std::printf("\n%s\n", asks.c_str());
    bool const costs = std::ranges::any_of(rows, is_cost);
    for (std::vector<row> const& group : by_heading(rows, costs ? is_cost : is_peak))
        print_table(group, rows);
    print_curve(by_heading(rows, is_curve));
    std::fflush(stdout);
}

void print_json(std::vector<row> const& rows, provenance const& run)
{
    for (row const& r : rows)
        std::cout << to_json(r, run) << '\n';
    std::cout.flush();
}

void losses::add(std::vector<row> const& rows, bool with_memory)
{
    bool (*const wanted)(row const&) = with_memory ? is_cost_or_memory : is_cost;
    for (std::vector<row> const& group : by_heading(rows, wanted)) {
        std::set<std::string> kinds;
        for (row const& r : group)
            kinds.insert(kind_of(r.contender));
        kinds.erase("");
        for (std::string const& kind : kinds) {
            row const* const ours = best_of(group, true, kind);
            row const* const theirs = best_of(group, false, kind);
            if (ours == nullptr || theirs == nullptr)
                continue;
            compared_ += 1;
            if (loss const found{*ours, *theirs}; found.ratio() > 1.1)
                all_.push_back(found);
        }
    }
}

void losses::print() const
{
    if (compared_ == 0)
        return;
    std::printf("\nMallard is more than 10 %% worse than the best competitor of its kind in %zu of "
                "%zu figures%s\n",
                all_.size(), compared_, all_.empty() ? "." : ":");
    for (loss const& l : all_) {
        std::printf("  %-40s %-14s %8s  %-28s against %8s  %-28s %5.2f\n", l.ours.case_name.c_str(),
                    l.ours.metric.c_str(), number(l.ours.figure->median).c_str(),
                    l.ours.contender.c_str(), number(l.theirs.figure->median).c_str(),
                    l.theirs.contender.c_str(), l.ratio());
    }
}

} // namespace mallard::bench
