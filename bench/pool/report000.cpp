// The benchmark of the project "fixed memory pool", as published (faithful), and without its
// mistakes (corrected).
//
// Faithful: there are 1,000,000 blocks of 64 bytes. The pool is filled with free blocks before the
// clock starts, so its pages are present and malloc's are not. Blocks are freed in the order of
// allocation. The interleaved case has one block in use. The clock is the CPU time of the thread
// instead of wall time, because other programs share the machine.
#include <bench/pool/contenders.hpp>
#include <bench/report000.hpp>

namespace mallard::bench {
namespace {

constexpr std::size_t block_bytes = report_block_bytes;

template <bulk_start Start>
std::vector<entrant> bulk_entrants(effort how, order frees)
{
    return entrants_of(many_contenders<block_bytes>{}, {frees, report_blocks},
                       [how, frees]<class C>() { return bulk_round<C, Start>(how, frees); });
}

experiment faithful_bulk(effort how)
{
    return {.asks = "Report 000, bulk: 1,000,000 blocks of 64 bytes are allocated, then freed in "
                    "the same order; a pool was filled before the clock started. ns a block",
            .figures = {{"report000/bulk-alloc", "ns_per_op", "faithful"},
                        {"report000/bulk-free", "ns_per_op", "faithful"}},
            .entrants = bulk_entrants<bulk_start::built>(how, order::forward),
            .rounds = report_repeats,
            .weight = 6};
}

template <bulk_start Start>
experiment corrected_bulk(effort how, order frees, const char* suffix, const char* asks)
{
    return {.asks = std::string("Report 000, bulk, ") + asks + " ns a block",
            .figures = {{std::string("report000/bulk-alloc/") + suffix, "ns_per_op", "corrected"},
                        {std::string("report000/bulk-free/") + suffix, "ns_per_op", "corrected"}},
            .entrants = bulk_entrants<Start>(how, frees),
            .weight = 4};
}

experiment faithful_interleaved(effort how)
{
    return {.asks = "Report 000, interleaved: 1,000,000 times allocate, write a byte, free; one "
                    "block live. ns a pair",
            .figures = {{"report000/interleaved", "ns_per_op", "faithful"}},
            .entrants = entrants_of(pool_contenders<block_bytes>{}, {},
                                    [how]<class C>() { return interleaved_round<C>(how); }),
            .rounds = report_repeats};
}

experiment replace(effort how, std::size_t live)
{
    return {.asks = "Report 000, interleaved, with " + std::to_string(live) +
                    " live blocks, of which a random one is freed and allocated anew. ns a pair",
            .figures = {{"report000/interleaved/live-" + std::to_string(live), "ns_per_op",
                         "corrected"}},
            .entrants = entrants_of(pool_contenders<block_bytes>{},
                                    // Allows contenders whose frees search the free list, because
                                    // the list has at most one block in this case.
                                    {order::shuffled, 1},
                                    [how, live]<class C>() { return replace_round<C>(how, live); }),
            .in_brief = live <= 4096,
            .weight = live <= 4096 ? 1.0 : 4.0};
}

experiment cold_bulk(effort how)
{
    experiment e = corrected_bulk<bulk_start::constructed>(
        how, order::forward, "cold",
        "both cold: each time in a new process, construction included.");
    e.fresh_process = true;
    e.in_brief = false;
    return e;
}

} // namespace

std::vector<experiment> pool_report000(effort how)
{
    std::vector<experiment> all{faithful_bulk(how), faithful_interleaved(how)};
    all.push_back(corrected_bulk<bulk_start::kept>(
        how, order::forward, "warm", "both warm: every page was used before, nobody returns any."));
    all.push_back(corrected_bulk<bulk_start::constructed>(
        how, order::forward, "with-construction", "the construction of the pool is timed."));
    all.push_back(corrected_bulk<bulk_start::kept>(
        how, order::reverse, "reverse", "warm, freed in reverse order, then allocated again."));
    all.push_back(corrected_bulk<bulk_start::kept>(
        how, order::shuffled, "shuffled", "warm, freed in random order, then allocated again."));
    for (std::size_t i = all.size() - 4; i < all.size(); ++i)
        all[i].in_brief = false;
    all.push_back(cold_bulk(how));
    for (std::size_t const live : {1u, 64u, 4096u, 1u << 20})
        all.push_back(replace(how, live));
    return all;
}

} // namespace mallard::bench
