// The suite lakos2 is Benchmark II of J. Lakos (ACCU 2017): elements move between lists. Some
// strategies have a separate allocator for each list, and others one allocator for all lists.
#include <bench/lab/cache_misses.hpp>
#include <bench/lakos/lab.hpp>
#include <bench/suites.hpp>

namespace mallard::bench {
namespace {

/// The parameters of lists that several cases share.
struct lists {
    std::string name;     // "2^21/S=2^13"
    std::size_t elements; // number in all lists
    std::size_t size;     // elements of each list
};

lists powers(std::size_t elements, std::size_t size)
{
    return {power_of_two(elements) + "/S=" + power_of_two(size), std::size_t{1} << elements,
            std::size_t{1} << size};
}

std::string described(lists const& l)
{
    return std::to_string(l.elements / l.size) + " list<int> of " + std::to_string(l.size);
}

/// How many elements move between lists, and how often each list is walked over.
struct history {
    std::string after = {};  // in the name, such as "/shuffles=0.1"; empty for Lakos's 5
    double shuffles = 5;     // moves of each element before each measurement
    std::size_t stages = 1;  // number of shuffles, with a measurement after each
    std::size_t walks = 256; // repeated walks over a list before the next list
    std::size_t looks = 9;   // measurements after a shuffle, with 256 walks, 128, ... 1

    std::size_t moves(lists const& l) const
    {
        return static_cast<std::size_t>(static_cast<double>(l.elements) * shuffles);
    }
};

// Which contenders run. `talks` means those of Lakos's program.
enum class who { all, talks, first };

// Returns the contenders that can free single blocks. Only some of them run Lakos's original
// program, because the corrected variant measures the same in a hundredth of the time.
std::vector<player> players_of(who wanted)
{
    std::vector<player> all = without_wink_out();
    std::erase_if(all, [&](player const& p) {
        int const strategy = p.who.strategy;
        if (strategy == 2 || strategy == 3 || strategy == 5)
            return true;
        bool const ours = p.name.starts_with("mallard");
        bool const usual = p.name.starts_with("glibc") || p.name == "mallard/AS7";
        return (wanted == who::first && !usual) ||
               (wanted == who::talks && !usual && !ours && !p.name.starts_with("libstdc++"));
    });
    if (wanted == who::all) {
        all.push_back(one_player({"mallard/largest=32", 7}));
        all.push_back(one_player({"mallard/fifo", 7}));
    }
    return all;
}

// Estimates the seconds: 100 ns for a move and 5 ns for an access, less if the lists fit into a
// cache.
double seconds(lists const& l, double moves, double accesses)
{
    return 0.02 + static_cast<double>(l.elements) * 1e-7 + moves * 1e-7 + accesses * 5e-9;
}

experiment faithful(lists const& l, std::string const& name, history const& h,
                    std::size_t repetitions, who players)
{
    experiment e =
        in_the_lab(described(l) + ", all walked over " + std::to_string(repetitions) + " x " +
                       std::to_string(h.walks) + " times; times differenced over four processes",
                   {{name, "degradation", "faithful"}}, players_of(players), "locality",
                   {l.elements, l.size, h.moves(l), 1, h.walks, 1, repetitions, 0});
    e.once = true;
    e.in_brief = false;
    double const accesses = static_cast<double>(l.elements * h.walks * repetitions);
    e.weight = static_cast<double>(e.entrants.size()) *
               seconds(l, 4 * static_cast<double>(h.moves(l)), 2 * accesses);
    return e;
}

// Returns the number of repetitions with which each list is visited `in_all` times in total, as in
// Lakos's program.
std::size_t repetitions(std::size_t walks, std::size_t in_all, effort how)
{
    std::size_t const less = how.is_smoke() ? 12 : how.is_brief() ? 3 : how.less;
    return std::max<std::size_t>(1, (in_all / walks) >> less);
}

/// Makes one experiment. Each of the `names` is a measurement of the same lists.
experiment corrected(lists const& l, std::vector<std::string> const& names, history const& h,
                     effort how)
{
    std::size_t const less = how.is_smoke() ? 16 : how.is_brief() ? 4 : how.less;
    std::size_t const accesses = std::max<std::size_t>(1, (std::size_t{1} << 22) >> less);
    bool const counted = lab::cache_misses().works();
    std::vector<figure> figures;
    for (std::string const& name : names) {
        figures.push_back({name, "degradation", "corrected"});
        figures.push_back({name, "ns_per_op", "corrected"});
        if (counted)
            figures.push_back({name, "last_level_misses", "corrected"});
    }
    for (const char* const metric : {"ns_per_op", "page_faults", "peak_rss_kib"})
        figures.push_back({l.name + h.after + "/life", metric, "corrected"});
    experiment e = in_the_lab(
        described(l) + "; an operation is an access after elements have moved, and in life to "
                       "build, move and destroy one",
        figures, players_of(who::all), "locality",
        {l.elements, l.size, h.moves(l), h.stages, h.walks, h.looks, 0, accesses});
    // Runs three rounds, but only one in a short run or with more than 2^21 elements.
    e.rounds = 3;
    e.once = how.is_smoke() || how.is_brief() || l.elements > std::size_t{1} << 21;
    e.in_brief = false;
    e.weight = static_cast<double>(e.entrants.size() * (e.once ? 1 : 3)) *
               seconds(l, static_cast<double>(h.moves(l) * h.stages),
                       static_cast<double>(names.size() * 10 * accesses));
    return e;
}

std::string iterations(std::size_t exponent)
{
    return "/I=" + power_of_two(exponent);
}

experiment all_iterations(lists const& l, history const& h, effort how)
{
    std::vector<std::string> names;
    for (std::size_t i = 0; i <= 8; ++i)
        names.push_back(l.name + iterations(8 - i) + h.after);
    return corrected(l, names, h, how);
}

// Makes a case that Lakos did not measure: only a tenth of the elements move, or each element moves
// once.
experiment hardly_shuffled(lists const& l, bool once, effort how)
{
    return all_iterations(
        l, {.after = once ? "/shuffles=1" : "/shuffles=0.1", .shuffles = once ? 1 : 0.1}, how);
}

// Adds a table of Lakos, which has all sizes and several numbers of walks for each size.
void add_table(std::vector<experiment>& all, std::size_t elements, who players, effort how)
{
    for (std::size_t size = elements + 1; size-- > 0;) {
        lists const l = powers(elements, size);
        all.push_back(all_iterations(l, {}, how));
        for (std::size_t i = 9; i-- > 0;) {
            history const h{.walks = std::size_t{1} << i};
            all.push_back(
                faithful(l, l.name + iterations(i), h, repetitions(h.walks, 2560, how), players));
        }
    }
}

// Adds Lakos's other table, with measurements after each of nine shuffles.
void add_diffusion(std::vector<experiment>& all, std::size_t largest, effort how)
{
    std::size_t elements = 1;
    for (std::size_t i = 0; i < largest; ++i)
        elements *= 10;
    std::size_t size = elements;
    for (std::size_t exponent = largest + 1; exponent-- > 0; size /= 10) {
        lists const l{"diffusion/S=10^" + std::to_string(exponent), elements, size};
        std::vector<std::string> names;
        for (std::size_t shuffles = 1; shuffles <= 9; ++shuffles)
            names.push_back(l.name + "/shuffles=" + std::to_string(shuffles));
        all.push_back(
            corrected(l, names, {.shuffles = 1, .stages = 9, .walks = 10, .looks = 1}, how));
        for (std::size_t shuffles = 1; shuffles <= 9; ++shuffles) {
            all.push_back(faithful(l, names[shuffles - 1],
                                   {.shuffles = static_cast<double>(shuffles), .walks = 10},
                                   repetitions(10, 1000, how), who::first));
            all.back().rounds = 7;
            all.back().once = how.is_smoke() || how.is_brief() || how.less > 0;
        }
    }
}

// Adds cases that are small enough for a short run, because Lakos's cases are too large.
void add_small(std::vector<experiment>& all, effort how)
{
    for (std::size_t const elements : {16u, 18u}) {
        for (std::size_t size = elements + 1; size-- > 0;) {
            lists const l = powers(elements, size);
            all.push_back(all_iterations(l, {}, how));
            all.back().in_brief = (size == 10 && elements == 18) || (size == 4 && elements == 16);
        }
    }
    lists const l = powers(16, 8);
    all.push_back(
        faithful(l, l.name + iterations(4), {.walks = 16}, repetitions(16, 2560, how), who::talks));
    all.back().in_brief = true;
}

// Adds cases with small structures, for which a separate allocator should not cost time.
void add_hardly_shuffled(std::vector<experiment>& all, effort how)
{
    for (std::size_t const elements : {16u, 21u}) {
        for (std::size_t size = 5; size-- > 0;) {
            for (bool const once : {false, true}) {
                all.push_back(hardly_shuffled(powers(elements, size), once, how));
                all.back().in_brief = elements == 16 && size == 4 && !once;
            }
        }
    }
}

std::vector<experiment> one_of_each(effort how)
{
    lists const l = powers(10, 4);
    std::vector<experiment> all{all_iterations(l, {}, how), hardly_shuffled(l, true, how),
                                faithful(l, l.name + iterations(4), {.walks = 16}, 1, who::talks)};
    add_diffusion(all, 2, how);
    return all;
}

} // namespace

std::vector<experiment> lakos2_suite(effort how)
{
    if (how.is_smoke())
        return one_of_each(how);
    std::vector<experiment> all;
    add_small(all, how);
    add_hardly_shuffled(all, how);
    add_table(all, 21, who::talks, how);
    add_diffusion(all, 7, how);
    add_table(all, 25, who::first, how);
    return all;
}

} // namespace mallard::bench
