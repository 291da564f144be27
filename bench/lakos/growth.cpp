// The suites lakos1 and lakos5 build and destroy the data structures DS1 to DS12 of J. Lakos (ACCU
// 2017) under each strategy. lakos1 uses a new heap, and lakos5 a heap with gaps.
#include <bench/lakos/lab.hpp>
#include <bench/suites.hpp>

#include <array>

namespace mallard::bench {
namespace {

constexpr std::array structures = {"vector<int>",
                                   "vector<string>",
                                   "unordered_set<int>",
                                   "unordered_set<string>",
                                   "vector<vector<int>>",
                                   "vector<vector<string>>",
                                   "vector<unordered_set<int>>",
                                   "vector<unordered_set<string>>",
                                   "unordered_set<vector<int>>",
                                   "unordered_set<vector<string>>",
                                   "unordered_set<unordered_set<int>>",
                                   "unordered_set<unordered_set<string>>"};

constexpr std::size_t inner_exponent = 7;

/// A case of the suites: one structure of one size.
struct cell {
    std::size_t structure; // 1 to 12, for DS1 to DS12
    std::size_t exponent;  // the structure has 2^exponent elements

    std::string name() const
    {
        return "DS" + std::to_string(structure) + "/" + power_of_two(exponent);
    }
    std::string asks() const
    {
        std::string text = structures[structure - 1];
        text += " of " + power_of_two(exponent);
        return structure > 4 ? text + " x " + power_of_two(inner_exponent) : text;
    }
    // Returns the binary logarithm of the number of elements in all repetitions together. The run
    // has time for 2^wanted elements, but a single repetition may need more.
    std::size_t elements(std::size_t wanted) const
    {
        return std::max(wanted, exponent + (structure > 4 ? inner_exponent : 0));
    }
};

std::size_t wanted_elements(effort how, std::size_t in_full)
{
    return how.is_smoke() ? 6 : how.is_brief() ? 17 : in_full - how.less;
}

std::vector<figure> growth_figures(std::string const& name, const char* variant)
{
    return {{name, "ns_per_op", variant},
            {name, "page_faults", variant},
            {name, "peak_rss_kib", variant},
            {name, "after_rss_kib", variant},
            {name, "fragmentability", variant}};
}

// Estimates the work of a case: an int costs about 5 ns, a string 100 ns.
double weight_of(cell const& c, std::size_t exponent, double processes)
{
    double const elements = static_cast<double>(std::size_t{1} << c.elements(exponent));
    return processes * (1e6 + elements * (c.structure % 2 == 0 ? 20 : 1));
}

experiment faithful(cell const& c, effort how)
{
    std::size_t const exponent = wanted_elements(how, 27);
    std::vector<figure> figures = growth_figures(c.name(), "faithful");
    figures.pop_back();
    experiment e =
        in_the_lab(c.asks() + ", as Lakos measured it; an operation is an element",
                   std::move(figures), all_players(), "growth",
                   {c.structure, std::size_t{1} << c.exponent, std::size_t{1} << exponent, 1, 0});
    e.once = true;
    e.weight = weight_of(c, exponent, 1);
    return e;
}

experiment corrected(cell const& c, effort how)
{
    std::size_t const exponent = wanted_elements(how, 24);
    experiment e =
        in_the_lab(c.asks() + ", all over one heap; an operation is an element",
                   growth_figures(c.name(), "corrected"), all_players(), "growth",
                   {c.structure, std::size_t{1} << c.exponent, std::size_t{1} << exponent, 0, 0});
    e.rounds = 5;
    e.once = how.is_smoke() || how.is_brief();
    e.weight = weight_of(c, exponent, 5);
    return e;
}

// Makes the variant in which glibc returns memory to the system. Strategies with wink-out are
// omitted, because they return the same memory as the same strategies without wink-out.
experiment returning(cell const& c, effort how)
{
    std::size_t const exponent = wanted_elements(how, 24);
    experiment e = in_the_lab(
        c.asks() + ", over a glibc that returns memory to the system as it does by default",
        growth_figures(c.name(), "returning"), without_wink_out(), "growth",
        {c.structure, std::size_t{1} << c.exponent, std::size_t{1} << exponent, 2, 0});
    e.rounds = 3;
    e.once = how.is_smoke();
    e.weight = weight_of(c, exponent, 2);
    return e;
}

bool is_in_brief(std::size_t exponent)
{
    return exponent == 6 || exponent == 10;
}

experiment littered(cell const& c, std::size_t freed_of, effort how)
{
    std::string const state = freed_of == 0 ? "clean" : "freed=1/" + std::to_string(freed_of);
    std::string const before = freed_of == 0
                                   ? "nothing"
                                   : "2^16 blocks of 1 to 1,024 bytes, 1/" +
                                         std::to_string(freed_of) + " of them freed at random,";
    std::size_t const exponent = wanted_elements(how, 24);
    experiment e = in_the_lab(
        c.asks() + " after " + before + " in the same heap",
        growth_figures(c.name() + "/" + state, "corrected"), without_wink_out(), "growth",
        {c.structure, std::size_t{1} << c.exponent, std::size_t{1} << exponent, 0, freed_of});
    e.rounds = 5;
    e.once = how.is_smoke() || how.is_brief();
    e.weight = weight_of(c, exponent, 5);
    return e;
}

} // namespace

std::vector<experiment> lakos1_suite(effort how)
{
    std::vector<experiment> all;
    for (std::size_t structure = 1; structure <= structures.size(); ++structure) {
        for (std::size_t exponent = 6; exponent <= (how.is_smoke() ? 6 : 16); ++exponent) {
            for (auto const make : {corrected, faithful, returning}) {
                all.push_back(make({structure, exponent}, how));
                all.back().in_brief = make != returning && is_in_brief(exponent);
            }
        }
    }
    return all;
}

std::vector<experiment> lakos5_suite(effort how)
{
    std::vector<experiment> all;
    for (std::size_t structure = 1; structure <= structures.size(); ++structure) {
        for (std::size_t const exponent : {6, 10, 14}) {
            if (how.is_smoke() && exponent > 6)
                continue;
            for (std::size_t const freed_of : {0, 1, 2, 4, 8}) {
                all.push_back(littered({structure, exponent}, freed_of, how));
                all.back().in_brief = exponent == 10 && (freed_of == 0 || freed_of == 2);
            }
        }
    }
    return all;
}

} // namespace mallard::bench
