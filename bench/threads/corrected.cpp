// Measures the concurrent case of report 002 without its mistakes. Threads exist before the clock
// starts, and serve all rounds. The time is fixed instead of the work, and the operations of each
// thread are counted. More than one block is live. Every threading mode is measured in one run. The
// pool for one thread is measured only with one thread, or with one pool for each thread.
//
// ns_per_op is wall time / pairs of all threads, as in the report, where a pair is an allocation
// and its free. If there are more threads than processors, ns_per_op shows how many pairs the
// machine does, not how long a pair takes. cpu_ns_per_op is the cost of a pair.
#include <bench/threads/contenders.hpp>
#include <bench/threads/pairs.hpp>

namespace mallard::bench {
namespace {

experiment corrected(effort how, std::size_t threads, std::size_t live)
{
    std::string const name = "report002/corrected/live-" + std::to_string(live);
    std::string const work = live == 1
                                 ? "allocates, writes a byte and frees"
                                 : "keeps " + std::to_string(live) +
                                       " blocks, of which a random one is freed and allocated anew";
    return {.asks = "Report 002, corrected: " + std::to_string(threads) +
                    " threads share a pool of blocks of 64 bytes; each " + work +
                    ". ns a pair: wall time / pairs of all threads, and CPU time",
            .figures = costs(threads_name(name, threads), threads, "corrected"),
            .entrants = entrants_for({.live = live, .threads = threads},
                                     [how, threads, live]<class C>() -> round_function {
                                         return [p = std::make_shared<pairs<C>>(threads, live),
                                                 ns = window_ns(how)](std::span<double> out) {
                                             p->round(ns, out);
                                         };
                                     }),
            .weight = 2};
}

} // namespace

std::vector<experiment> threads_corrected(effort how)
{
    std::vector<experiment> all;
    for (std::size_t const live : {1u, 64u}) {
        for (std::size_t const threads : thread_counts(1))
            all.push_back(corrected(how, threads, live));
    }
    return all;
}

} // namespace mallard::bench
