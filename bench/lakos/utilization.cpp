// The suite lakos3 is Benchmark III of J. Lakos (ACCU 2017): blocks are freed and others allocated,
// and only a part of all blocks is in use at a time.
#include <bench/lakos/lab.hpp>
#include <bench/suites.hpp>

namespace mallard::bench {
namespace {

/// A case of the suite. Each size is given by its binary logarithm.
struct cell {
    std::size_t total;  // 2^n bytes requested in total
    std::size_t active; // 2^n bytes in use
    std::size_t block;  // 2^n bytes of one block

    std::string name() const
    {
        return "T=" + power_of_two(total) + "/M=" + power_of_two(active) +
               "/S=" + power_of_two(block);
    }
    std::string asks() const
    {
        return power_of_two(total - block) + " blocks of " + power_of_two(block) +
               " bytes, the oldest of " + power_of_two(active - block) + " freed before each more";
    }
    std::vector<std::size_t> numbers(std::size_t lives, std::size_t least_ns) const
    {
        return {std::size_t{1} << total, std::size_t{1} << active, std::size_t{1} << block, lives,
                least_ns};
    }
    // Estimates the seconds: a block costs 20 ns or more, and page faults if its memory is not
    // reused.
    double seconds() const
    {
        double const blocks = static_cast<double>(std::size_t{1} << (total - block));
        return 0.01 + blocks * 3e-8 + static_cast<double>(std::size_t{1} << total) * 1e-10;
    }
};

experiment faithful(cell const& c, effort how)
{
    std::size_t const lives = how.is_smoke() || how.is_brief() || how.less > 0 ? 3 : 7;
    experiment e = in_the_lab(c.asks() + "; as Lakos measured it, with no more than 5,000,000 KiB",
                              {{c.name(), "seconds", "faithful"}}, without_wink_out(),
                              "utilization", c.numbers(lives, 0));
    e.once = true;
    e.weight = static_cast<double>(e.entrants.size() * lives) * c.seconds();
    return e;
}

experiment corrected(cell const& c, effort how)
{
    double const least = how.is_smoke()   ? 1e5
                         : how.is_brief() ? 5e7
                                          : 1e9 / static_cast<double>(std::size_t{1} << how.less);
    std::vector<player> players = without_wink_out();
    players.push_back(one_player({"mallard/reset", 3}));
    std::vector<figure> figures;
    for (const char* const metric : {"ns_per_op", "page_faults", "peak_rss_kib", "after_rss_kib"})
        figures.push_back({c.name(), metric, "corrected"});
    experiment e =
        in_the_lab(c.asks() + "; an operation is to allocate and free one", figures, players,
                   "utilization", c.numbers(0, static_cast<std::size_t>(least)));
    e.rounds = 3;
    e.once = how.is_smoke() || how.is_brief();
    e.weight =
        static_cast<double>(e.entrants.size() * (e.once ? 1 : 3)) * (c.seconds() + least * 1e-9);
    return e;
}

void add(std::vector<experiment>& all, cell const& c, effort how)
{
    all.push_back(corrected(c, how));
    all.push_back(faithful(c, how));
}

} // namespace

std::vector<experiment> lakos3_suite(effort how)
{
    std::vector<experiment> all;
    if (how.is_smoke()) {
        add(all, {20, 15, 10}, how);
        return all;
    }
    // Adds only sizes with which a monotonic allocator does not run out of memory, and for which a
    // short run has time.
    for (std::size_t block = 6; block <= 15; ++block)
        add(all, {26, 20, block}, how);
    for (experiment& e : all)
        e.in_brief = e.figures[0].case_name.ends_with("S=2^10") ||
                     e.figures[0].case_name.ends_with("S=2^13");
    std::size_t const small = all.size();
    for (std::size_t total = 30; total <= 35; ++total) {
        for (std::size_t active = 15; active <= 20; ++active)
            add(all, {total, active, 10}, how);
        for (std::size_t block = 11; block <= 15; ++block)
            add(all, {total, 20, block}, how);
    }
    for (std::size_t i = small; i < all.size(); ++i)
        all[i].in_brief = false;
    return all;
}

} // namespace mallard::bench
