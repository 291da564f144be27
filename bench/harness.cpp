#include <bench/harness.hpp>

#include <bench/child.hpp>
#include <bench/clock.hpp>
#include <bench/progress.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <regex>

namespace mallard::bench {
namespace {

constexpr double brief_seconds = 36;

bool matches(std::string const& text, std::string const& pattern)
{
    return pattern.empty() || std::regex_search(text, std::regex(pattern));
}

bool is_selected(experiment const& e, effort how, selection const& chosen)
{
    if (how.is_brief() && !e.in_brief && chosen.case_pattern.empty())
        return false;
    return std::ranges::any_of(e.figures, [&](figure const& f) {
        return matches(f.case_name, chosen.case_pattern) &&
               matches(f.variant, chosen.variant_pattern);
    });
}

/// The measurements of one contender in one experiment so far.
struct lane {
    entrant const* who;
    std::size_t index; // index of the contender in the experiment's entrants
    std::string name;
    round_function round = {};
    std::string why = {};
    std::vector<std::vector<double>> samples = {}; // samples of each figure
    child_result memory = {};
};

class trial {
public:
    trial(suite const& in, std::size_t number, experiment const& what, effort how,
          selection const& chosen)
        : suite_(in), number_(number), what_(what), how_(how)
    {
        for (std::size_t i = 0; i < what.entrants.size(); ++i) {
            lane l{.who = &what.entrants[i], .index = i, .name = what.entrants[i].name()};
            l.samples.resize(what.figures.size());
            if (matches(l.name, chosen.contender_pattern) && !is_kept(chosen, l.name))
                lanes_.push_back(std::move(l));
        }
    }

    bool empty() const { return lanes_.empty(); }

    /// Measures for about `seconds`. If `asked` is not 0, runs exactly `asked` rounds instead.
    void measure(double seconds, std::size_t asked, progress& shown)
    {
        if (!what_.fresh_process)
            prepare();
        double const start = wall_ns();
        one_round(0, shown);
        if (!what_.once) {
            if (!what_.fresh_process)
                drop_samples();
            double const round_seconds = (wall_ns() - start) * 1e-9;
            std::size_t const rounds = how_many(seconds / round_seconds, asked);
            for (std::size_t r = 1; r < rounds + (what_.fresh_process ? 0 : 1); ++r)
                one_round(r, shown);
        }
        for (lane& l : lanes_)
            l.round = nullptr;
        if (!how_.is_smoke())
            measure_memory(shown);
    }

    std::vector<row> rows()
    {
        std::vector<row> all;
        for (std::size_t f = 0; f < what_.figures.size(); ++f) {
            for (lane& l : lanes_)
                add_rows(all, what_.figures[f], l, l.samples[f]);
        }
        return all;
    }

private:
    bool is_kept(selection const& chosen, std::string const& contender) const
    {
        return chosen.is_kept && std::ranges::all_of(what_.figures, [&](figure const& f) {
                   return chosen.is_kept(suite_.name, f, contender);
               });
    }

    void prepare()
    {
        for (lane& l : lanes_)
            unless_it_cannot(l, [&] { l.round = l.who->prepare(); });
    }

    template <class F>
    static void unless_it_cannot(lane& l, F f)
    {
        try {
            f();
        } catch (cannot_run const& reason) {
            l.why = reason.what();
        }
    }

    // Returns the number of rounds. In a short run, a heavy experiment has three rounds (two if the
    // run is late), so that the results have a spread.
    std::size_t how_many(double that_fit, std::size_t asked) const
    {
        if (how_.is_smoke())
            return 1;
        if (asked != 0)
            return asked;
        std::size_t const least = !how_.is_brief() ? 9 : that_fit > 0 ? 3 : 2;
        std::size_t const most = how_.is_brief() ? 15 : 41;
        if (what_.rounds != 0)
            return how_.is_brief() ? std::min(what_.rounds, least) : what_.rounds;
        return static_cast<std::size_t>(
            std::clamp(that_fit, static_cast<double>(least), static_cast<double>(most)));
    }

    void one_round(std::size_t number, progress& shown)
    {
        shown.say(std::string(suite_.name) + " " + what_.figures[0].case_name + ": round " +
                  std::to_string(number));
        std::vector<lane*> order;
        for (std::size_t i = 0; i < lanes_.size(); ++i)
            order.push_back(&lanes_[(i + number) % lanes_.size()]);
        std::erase_if(order, [](lane const* l) { return !l->why.empty(); });
        if (what_.fresh_process) {
            measure_alone(order, what_.at_once);
            for (lane* const l : order) {
                l->why = l->memory.why;
                keep_sample(*l, l->memory.figures);
            }
            return;
        }
        for (lane* const l : order) {
            std::vector<double> figures(what_.figures.size());
            unless_it_cannot(*l, [&] { l->round(figures); });
            keep_sample(*l, figures);
        }
    }

    static void keep_sample(lane& l, std::vector<double> const& figures)
    {
        for (std::size_t f = 0; l.why.empty() && f < figures.size(); ++f)
            l.samples[f].push_back(figures[f]);
    }

    void drop_samples()
    {
        for (lane& l : lanes_) {
            for (std::vector<double>& samples : l.samples)
                samples.clear();
        }
    }

    // Measures memory in two processes at a time, which do not disturb each other, because memory
    // does not depend on speed.
    void measure_memory(progress& shown)
    {
        if (what_.fresh_process || !what_.with_memory)
            return;
        shown.say(std::string(suite_.name) + " " + what_.figures[0].case_name + ": memory");
        std::vector<lane*> all;
        for (lane& l : lanes_) {
            if (l.why.empty())
                all.push_back(&l);
        }
        measure_alone(all, 2);
    }

    // Measures each contender in a separate process. `at_once` processes run at the same time.
    void measure_alone(std::vector<lane*> const& lanes, std::size_t at_once)
    {
        std::vector<std::pair<lane*, pending_result>> running;
        for (lane* const l : lanes) {
            running.emplace_back(l, start_alone(*l));
            if (running.size() < at_once && l != lanes.back())
                continue;
            for (auto const& [which, wait] : running)
                which->memory = wait();
            running.clear();
        }
    }

    pending_result start_alone(lane const& l) const
    {
        if (l.who->start_alone)
            return l.who->start_alone();
        return [child = start_child({suite_.name, number_, l.index}, how_)]() mutable {
            return child.wait();
        };
    }

    void add_rows(std::vector<row>& all, figure const& f, lane& l, std::vector<double>& samples)
    {
        row const common{.suite = std::string(suite_.name),
                         .case_name = f.case_name,
                         .contender = l.name,
                         .threads = l.who->threads != 0 ? l.who->threads : f.threads,
                         .metric = f.metric,
                         .figure = {},
                         .variant = f.variant,
                         .why = l.why};
        all.push_back(common);
        if (l.why.empty() && std::ranges::any_of(samples, [](double s) { return std::isnan(s); }))
            all.back().why = l.who->why_unknown.empty() ? no_cycles : l.who->why_unknown;
        else if (l.why.empty() && !samples.empty())
            all.back().figure = summarise(samples);
        // Adds the memory results only once for each case name, because one process has all figures
        // of an experiment.
        bool const told = std::ranges::any_of(all, [&](row const& r) {
            return r.case_name == f.case_name && r.variant == f.variant && r.contender == l.name &&
                   r.metric == "peak_rss_kib";
        });
        if (told || !what_.with_memory || samples.empty() || how_.is_smoke() ||
            f.metric == "rss_kib")
            return;
        add_memory(all, common, "peak_rss_kib", l.memory.peak_kib);
        add_memory(all, common, "after_rss_kib", l.memory.after_kib);
    }

    static void add_memory(std::vector<row>& all, row r, const char* metric, double kib)
    {
        r.metric = metric;
        r.figure = summary{kib, kib, kib, 1};
        all.push_back(r);
    }

    suite const& suite_;
    std::size_t number_;
    experiment const& what_;
    effort how_;
    std::vector<lane> lanes_;
};

} // namespace

void run(suite const& s, effort how, selection const& chosen, rows_function const& report)
{
    std::vector<experiment> const all = s.experiments(how);
    double weights = 0;
    for (experiment const& e : all)
        weights += is_selected(e, how, chosen) ? e.weight : 0;
    double const deadline = wall_ns() + 1e9 * (how.is_brief() ? brief_seconds : s.minutes * 60);
    progress shown(weights);
    for (std::size_t number = 0; number < all.size(); ++number) {
        experiment const& e = all[number];
        if (!is_selected(e, how, chosen))
            continue;
        // Gives the experiment its share of the remaining time. A third of the share is for
        // measuring memory.
        double const left = std::max(0.0, (deadline - wall_ns()) * 1e-9);
        double const seconds = left * e.weight / std::max(weights, e.weight) * 2 / 3;
        weights -= e.weight;
        trial t(s, number, e, how, chosen);
        if (!t.empty()) {
            t.measure(seconds, chosen.rounds, shown);
            shown.clear();
            report(e, t.rows());
        }
        shown.advance(e.weight);
    }
}

void list(suite const& s, selection const& chosen)
{
    std::cout << s.name << ": " << s.asks << '\n';
    for (experiment const& e : s.experiments({})) {
        if (!is_selected(e, {}, chosen))
            continue;
        for (figure const& f : e.figures) {
            std::cout << "  " << f.case_name << "  " << f.metric;
            if (!f.variant.empty())
                std::cout << "  (" << f.variant << ')';
            std::cout << (e.in_brief ? "\n" : "  not with --short\n");
        }
        std::cout << "      " << e.asks << '\n';
    }
}

} // namespace mallard::bench
