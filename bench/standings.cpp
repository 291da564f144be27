#include <bench/standings.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

namespace mallard::bench {
namespace {

// Cycles are ns in another unit.
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

} // namespace

double standings::mean::value() const
{
    return std::exp(logarithms / static_cast<double>(count));
}

void standings::add(std::vector<row> const& rows)
{
    for (row const& base : rows) {
        if (!base.contender.starts_with("glibc") || !counts(base))
            continue;
        for (row const& r : rows) {
            if (!counts(r) || heading_of(r) != heading_of(base))
                continue;
            mean& m = means_[kind_of(r.metric)][r.contender];
            m.logarithms += std::log(r.figure->median / base.figure->median);
            m.count += 1;
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
                               .figure = summary{value, value, value, m.count},
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
        std::printf("\ngeometric mean, %s\n  %-38s %9s %9s %6s\n", what.c_str(), "", "it/glibc",
                    "it/best", "rows");
        std::vector<std::pair<std::string, mean>> order(of_kind.begin(), of_kind.end());
        std::ranges::stable_sort(order, {}, [](auto const& m) { return m.second.value(); });
        for (auto const& [contender, m] : order) {
            std::printf("  %-38s %9.3f %9.3f %6zu\n", contender.c_str(), m.value(),
                        m.value() / best(what), m.count);
        }
    }
}

} // namespace mallard::bench
