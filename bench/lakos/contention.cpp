// The suite lakos4 is Benchmark IV of J. Lakos (ACCU 2017): threads that allocate at the same time.
// Lakos did not measure some of the cases: a shared allocator, blocks that another thread frees,
// and blocks of two threads in one cache line.
#include <bench/lab/contention.hpp>
#include <bench/lakos/lab.hpp>
#include <bench/suites.hpp>

#include <bit>

namespace mallard::bench {
namespace {

using lab::contention_cell;
using kind = contention_cell::kind;

/// A case of the suite, with one number of threads.
struct cell {
    std::size_t operations; // 2^n for each thread
    std::size_t block;      // 2^n bytes
    std::size_t threads;

    std::string name() const { return "I=" + power_of_two(operations) + "/" + short_name(); }
    std::string short_name() const
    {
        return "S=" + power_of_two(block) + "/W=" + std::to_string(threads);
    }
    std::vector<std::size_t> numbers(kind of, std::size_t rounds, double least_ns) const
    {
        return {static_cast<std::size_t>(of),
                std::size_t{1} << operations,
                std::size_t{1} << block,
                threads,
                rounds,
                static_cast<std::size_t>(least_ns)};
    }
};

std::string in_words(std::size_t threads)
{
    std::size_t const processors = std::thread::hardware_concurrency();
    std::string text = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    if (threads > processors)
        text += " on " + std::to_string(processors) + " processors";
    return text;
}

// Returns the minimum time that a process measures.
double least_ns(effort how)
{
    if (how.is_smoke())
        return 1e5;
    return how.is_brief() ? 5e7 : 1e9 / static_cast<double>(std::size_t{1} << how.less);
}

experiment faithful(cell const& c, effort how)
{
    std::size_t const less = how.is_smoke() || how.is_brief() ? 4 : how.less;
    std::size_t const rounds = std::max<std::size_t>(1, std::size_t{10} >> less);
    experiment e = in_the_lab(
        in_words(c.threads) + ", made and joined ten times, each with a separate allocator",
        {{c.name(), "seconds", "faithful", static_cast<int>(c.threads)}}, without_wink_out(),
        "contention", c.numbers(kind::faithful, rounds, 0));
    e.once = true;
    double const operations =
        static_cast<double>((std::size_t{7} << c.operations) * rounds * c.threads);
    e.weight = static_cast<double>(e.entrants.size()) * (0.01 + operations * 1e-8);
    return e;
}

std::vector<figure> corrected_figures(std::string const& name, std::size_t threads)
{
    std::vector<figure> all;
    for (const char* const metric : {"ns_per_op", "cpu_ns_per_op", "peak_rss_kib", "after_rss_kib"})
        all.push_back({name, metric, "corrected", static_cast<int>(threads)});
    return all;
}

experiment corrected(std::string const& asks, std::string const& name, cell const& c, kind of,
                     std::vector<player> const& players, effort how)
{
    experiment e = in_the_lab(asks, corrected_figures(name, c.threads), players, "contention",
                              c.numbers(of, 1, least_ns(how)));
    e.rounds = 3;
    e.once = how.is_smoke() || how.is_brief();
    e.weight =
        static_cast<double>(e.entrants.size() * (e.once ? 1 : 3)) * (0.02 + least_ns(how) * 1.5e-9);
    return e;
}

experiment apart(cell const& c, effort how)
{
    return corrected(in_words(c.threads) + ", there already, each with a separate allocator; "
                                           "an operation is to allocate, write and free",
                     c.name(), c, kind::corrected, without_wink_out(), how);
}

// Lists the contenders that threads may share: every malloc, and every allocator that any thread
// may call.
std::vector<player> shared_players()
{
    std::vector<player> all;
    for (player const& p : all_players()) {
        if (p.who.strategy == 1)
            all.push_back(p);
    }
    lab::cast_shared([&]<class Memory>(lab::part who) {
        if (who.library == "limit")
            return;
        if (who.library != "heap")
            all.push_back(one_player(who));
    });
    return all;
}

experiment shared(cell const& c, effort how)
{
    return corrected(in_words(c.threads) + " that share an allocator; an operation is to "
                                           "allocate, write and free",
                     "shared/" + c.short_name(), c, kind::shared, shared_players(), how);
}

experiment remote(cell const& c, effort how)
{
    std::vector<player> players = shared_players();
    players.push_back(one_player({"limit", 1}));
    players.back().name = "limit/ring-alone";
    return corrected(in_words(c.threads) + ", each of which frees what its neighbour allocates; "
                                           "an operation is to allocate, write, send and free",
                     "remote/" + c.short_name(), c, kind::remote, players, how);
}

experiment sharing(cell const& c, effort how)
{
    std::vector<player> players = shared_players();
    for (int const strategy : {7, 9})
        players.push_back(one_player({"mallard", strategy}));
    return corrected(in_words(c.threads) + " that write to a block each, of an allocator that "
                                           "they share, or in AS7 and AS9 have for themselves; an "
                                           "operation is a write",
                     "sharing/" + c.short_name(), c, kind::sharing, players, how);
}

void add(std::vector<experiment>& all, experiment e, bool in_brief)
{
    e.in_brief = in_brief;
    all.push_back(std::move(e));
}

void add_table(std::vector<experiment>& all, std::size_t threads, effort how)
{
    for (std::size_t operations = 15; operations <= 19; ++operations) {
        for (std::size_t block = operations == 15 ? 6 : 8; block <= 8; ++block) {
            cell const c{operations, block, threads};
            bool const in_brief = operations == 15 && block == 6 && std::has_single_bit(threads);
            add(all, apart(c, how), in_brief);
            add(all, faithful(c, how), in_brief);
        }
    }
}

void add_what_it_left_out(std::vector<experiment>& all, std::size_t threads, effort how)
{
    for (std::size_t block = 4; block <= 10; block += 2) {
        cell const c{12, block, threads};
        bool const in_brief = block == 6 && (threads == 2 || threads == 8);
        add(all, shared(c, how), in_brief);
        if (threads > 1)
            add(all, remote(c, how), in_brief);
    }
    for (std::size_t const block : {3u, 6u})
        add(all, sharing({14, block, threads}, how), block == 3 && threads == 2);
}

} // namespace

std::vector<experiment> lakos4_suite(effort how)
{
    std::vector<experiment> all;
    if (how.is_smoke()) {
        cell const c{12, 6, 2};
        return {apart(c, how), faithful(c, how), shared(c, how), remote(c, how), sharing(c, how)};
    }
    for (std::size_t threads = 1; threads <= 8; ++threads)
        add_table(all, threads, how);
    for (std::size_t const threads : {1u, 2u, 4u, 8u})
        add_what_it_left_out(all, threads, how);
    return all;
}

} // namespace mallard::bench
