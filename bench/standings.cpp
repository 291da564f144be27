#include <bench/standings.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

namespace mallard::bench {
namespace {

// Returns the kind of mean to which a metric belongs. Cycles belong to none, because they measure
// the same as ns.
std::string kind_of(std::string const& metric)
{
    if (metric.ends_with("_rss_kib"))
        return metric.substr(0, metric.size() - 4);
    return metric.ends_with("ns_per_op") || metric.ends_with("seconds") ? "time" : "";
}

bool counts(row const& r)
{
    return r.figure && r.figure->median > 0 && !kind_of(r.metric).empty();
}

auto heading_of(row const& r)
{
    return std::tuple(r.case_name, r.variant, r.metric);
}

// Returns whether a result is the wall time of a case with several threads. Rankings use the CPU
// time of such a case, which is in another result.
bool is_counted_as_cpu_time(row const& r, std::vector<row> const& rows)
{
    return std::ranges::any_of(rows, [&](row const& other) {
        return other.case_name == r.case_name && other.variant == r.variant &&
               other.contender == r.contender && other.metric == "cpu_" + r.metric;
    });
}

// Returns the family of a case. crates/bench-report/src/rows/matching.rs defines the same families.
std::string family_of(row const& r)
{
    std::string const first = r.case_name.substr(0, r.case_name.find('/'));
    if (r.suite != "malloc")
        return first;
    if (first == "pair" || first == "fifo" || first == "list")
        return "pairs";
    if (first == "replace" || first == "realloc" || first == "large")
        return "mixes";
    if (first == "hakmem")
        return r.threads > 1 ? "threads" : "bulk";
    return first;
}

bool is_pair(row const& r)
{
    return (r.suite == "malloc" && family_of(r) == "pairs") ||
           ("/" + r.case_name + "/").find("/pair/") != std::string::npos;
}

} // namespace

double standings::standing::value() const
{
    double sum = 0;
    for (auto const& [family, m] : families)
        sum += m.logarithms / static_cast<double>(m.count);
    return std::exp(sum / static_cast<double>(families.size()));
}

std::size_t standings::standing::count() const
{
    std::size_t all = 0;
    for (auto const& [family, m] : families)
        all += m.count;
    return all;
}

void standings::add(std::vector<row> const& rows)
{
    auto const enter = [&](kind const& what, row const& r, double share) {
        mean& m = means_[what][r.contender].families[family_of(r)];
        m.logarithms += std::log(share);
        m.count += 1;
    };
    for (row const& base : rows) {
        if (!base.contender.starts_with("glibc") || !counts(base) ||
            is_counted_as_cpu_time(base, rows))
            continue;
        for (row const& r : rows) {
            if (!counts(r) || heading_of(r) != heading_of(base))
                continue;
            double const share = r.figure->median / base.figure->median;
            enter(kind_of(r.metric), r, share);
            if (kind_of(r.metric) == "time" && r.suite == "malloc" && !is_pair(r))
                enter("time_without_pairs", r, share);
        }
    }
}

double standings::best(kind const& k) const
{
    auto const& of_kind = means_.at(k);
    return std::ranges::min_element(of_kind, {}, [](auto const& m) { return m.second.value(); })
        ->second.value();
}

std::vector<row> standings::rows(std::string_view suite) const
{
    std::vector<row> all;
    for (auto const& [what, of_kind] : means_) {
        for (auto const& [contender, m] : of_kind) {
            for (auto const& [metric, value] :
                 {std::pair("ratio_to_glibc", m.value()),
                  std::pair("ratio_to_best", m.value() / best(what))}) {
                all.push_back({.suite = std::string(suite),
                               .case_name = "geometric_mean/" + what,
                               .contender = contender,
                               .metric = metric,
                               .figure = summary{value, value, value, m.count()},
                               .variant = {},
                               .why = {}});
            }
        }
    }
    return all;
}

void standings::print() const
{
    for (auto const& [what, of_kind] : means_) {
        std::printf("\ngeometric mean of the families of cases, %s\n  %-38s %9s %9s %6s\n",
                    what.c_str(), "", "it/glibc", "it/best", "rows");
        std::vector<std::pair<std::string, standing>> order(of_kind.begin(), of_kind.end());
        std::ranges::stable_sort(order, {}, [](auto const& m) { return m.second.value(); });
        for (auto const& [contender, m] : order) {
            std::printf("  %-38s %9.3f %9.3f %6zu\n", contender.c_str(), m.value(),
                        m.value() / best(what), m.count());
        }
    }
}

} // namespace mallard::bench
