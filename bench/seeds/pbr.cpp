// Measures the cases in the tables of the project "fixed memory pool" (pbr): all tables of v0.2.0,
// and the cases of v0.4.0 for one thread. All have 1,000,000 blocks of 64 bytes.
//
// Faithful (as published): there are ten repetitions, of which the first does not count. The blocks
// and pages of a pool exist before the clock starts, but the blocks and pages of a malloc do not.
// Blocks are freed in the order of allocation. One block is live in the interleaved case. Both
// versions measure in the same way, so one measurement is reported under both names. The clock is
// the CPU time of the thread instead of wall time, because other programs share the machine.
//
// Corrected: pool and malloc start in the same state. Either both are warm, or both are cold and
// the figures include construction and page faults. Further cases free in other orders, and have 1
// to 2^20 live blocks.
#include <bench/seeds/contenders.hpp>

namespace mallard::bench {
namespace {

const char* const versions[] = {"pbr-0.2.0", "pbr-0.4.0"};

/// Makes the name of a case. In the later version of pbr, names of cases for one thread end in
/// "/T=1".
std::string in_table(std::string const& version, std::string const& case_name)
{
    return version + "/" + case_name + (version == "pbr-0.4.0" ? "/T=1" : "");
}

template <bulk_start Start>
std::vector<entrant> bulk_entrants(effort how, order frees)
{
    return entrants_of(seed_contenders{}, {frees, report_blocks},
                       [how, frees]<class C>() { return bulk_round<C, Start>(how, frees); });
}

std::vector<figure> bulk_in_both(const char* variant)
{
    std::vector<figure> all;
    for (const char* const version : versions) {
        for (const char* const phase : {"bulk/alloc", "bulk/free"})
            all.push_back({in_table(version, phase), "ns_per_op", variant});
    }
    return all;
}

// Reports the same two figures again, under the names of the other version.
template <class C, bulk_start Start>
round_function bulk_of_both(effort how)
{
    return [once = bulk_round<C, Start>(how, order::forward)](std::span<double> out) {
        once(out.first(2));
        out[2] = out[0];
        out[3] = out[1];
    };
}

template <bulk_start Start>
experiment bulk(effort how, const char* variant, const char* asks)
{
    return {.asks = std::string("pbr v0.2.0 and v0.4.0, bulk: 1,000,000 blocks of 64 bytes are "
                                "allocated, then freed in the same order; ") +
                    asks + ". ns a block",
            .figures = bulk_in_both(variant),
            .entrants = entrants_of(seed_contenders{}, {order::forward, report_blocks},
                                    [how]<class C>() { return bulk_of_both<C, Start>(how); }),
            .rounds = report_repeats,
            .in_brief = Start == bulk_start::built,
            .weight = 4};
}

template <bulk_start Start>
experiment another_bulk(effort how, order frees, std::string const& suffix, const char* asks)
{
    return {.asks = std::string("pbr v0.2.0, bulk, corrected: ") + asks + ". ns a block",
            .figures = {{"pbr-0.2.0/bulk/alloc/" + suffix, "ns_per_op", "corrected"},
                        {"pbr-0.2.0/bulk/free/" + suffix, "ns_per_op", "corrected"}},
            .entrants = bulk_entrants<Start>(how, frees),
            .rounds = report_repeats,
            .in_brief = false,
            .weight = 4};
}

experiment cold_bulk(effort how)
{
    experiment e = another_bulk<bulk_start::constructed>(
        how, order::forward, "cold",
        "all cold, each time in a new process, the construction of the pool timed; page faults of "
        "1,000 blocks");
    for (const char* const phase : {"alloc", "free"})
        e.figures.push_back(
            {std::string("pbr-0.2.0/bulk/") + phase + "/cold", "page_faults", "corrected"});
    e.fresh_process = true;
    return e;
}

template <class C>
round_function interleaved_in_both(effort how)
{
    return [once = interleaved_round<C>(how)](std::span<double> out) {
        once(out.first(1));
        out[1] = out[0];
    };
}

experiment interleaved(effort how)
{
    std::vector<figure> figures;
    for (const char* const version : versions)
        figures.push_back({in_table(version, "interleaved"), "ns_per_op", "faithful"});
    return {.asks = "pbr v0.2.0 and v0.4.0, interleaved: 1,000,000 times allocate, write a byte, "
                    "free; one block live, in L1. ns a pair",
            .figures = figures,
            .entrants = entrants_of(seed_contenders{}, {},
                                    [how]<class C>() { return interleaved_in_both<C>(how); }),
            .rounds = report_repeats};
}

experiment replaced(effort how, std::size_t live)
{
    std::string const name =
        "pbr-0.2.0/interleaved" + (live == 1 ? "" : "/live=" + std::to_string(live));
    return {.asks = "pbr v0.2.0, interleaved, corrected: of " + std::to_string(live) +
                    " live blocks of 64 bytes a random one is freed and another allocated and "
                    "written to. ns a pair",
            .figures = {{name, "ns_per_op", "corrected"}},
            .entrants = entrants_of(seed_contenders{}, {order::shuffled, 1},
                                    [how, live]<class C>() { return replace_round<C>(how, live); }),
            .rounds = report_repeats,
            .in_brief = live == 4096,
            .weight = live <= 4096 ? 1.0 : 3.0};
}

} // namespace

std::vector<experiment> seeds_pbr(effort how)
{
    std::vector<experiment> all{
        bulk<bulk_start::built>(how, "faithful", "a pool was filled before the clock started"),
        bulk<bulk_start::kept>(how, "corrected",
                               "all warm: every page was used before, nobody returns any"),
        another_bulk<bulk_start::constructed>(how, order::forward, "with-construction",
                                              "the construction of the pool is timed"),
        another_bulk<bulk_start::kept>(how, order::reverse, "reverse",
                                       "warm, freed in reverse order, then allocated again"),
        another_bulk<bulk_start::kept>(how, order::shuffled, "shuffled",
                                       "warm, freed in random order, then allocated again"),
        cold_bulk(how),
        interleaved(how)};
    for (std::size_t const live : {1u, 64u, 4096u, 1u << 20})
        all.push_back(replaced(how, live));
    return all;
}

} // namespace mallard::bench
