// Measures the cases in the table of the project "fixed memory pool" (pbr) v0.4.0 in which four
// threads share a pool.
//
// Faithful (as published): there is a new pool of 4,096 blocks of 64 bytes. Threads are started,
// and a flag releases them. The clock stops when the last thread was joined. Each thread does
// 1,000,000 allocations and frees. The pool for one thread is in the same table, with one thread.
//
// Corrected: threads exist before the clock starts, and serve all rounds. They run for 40 ms in
// each round, and for more than a second in total. The operations of each thread are counted.
// Further cases have 64 live blocks. Each thread has its own pool if the pool is for one thread.
#include <bench/seeds/contenders.hpp>
#include <bench/threads/pairs.hpp>
#include <bench/threads/report002.hpp>

namespace mallard::bench {
namespace {

constexpr std::size_t threads = 4;

std::size_t iterations(effort how)
{
    return how.count(how.is_brief() ? 100'000 : 1'000'000);
}

template <class... Contenders>
std::vector<entrant> sharing(contender_list<Contenders...> who, effort how, std::size_t count)
{
    return entrants_of(who, {.threads = count}, [how, count]<class C>() -> round_function {
        auto const slots = std::make_shared<table<void*>>(how.count(4096));
        return [how, count, slots](std::span<double> out) {
            concurrent_round<C>(iterations(how), count, *slots, out);
        };
    });
}

experiment faithful(effort how)
{
    std::vector<entrant> all = sharing(shared_seed_contenders{}, how, threads);
    all.push_back(sharing(contender_list<seed_pool<sync::none>>{}, how, 1).front());
    all.back().threads = 1;
    return {.asks = "pbr v0.4.0, shared pool: 4 threads, each " + std::to_string(iterations(how)) +
                    " times allocate, write a byte, free, of 64 bytes; their start and end are "
                    "timed, and mode none is one thread. ns a pair: wall time / pairs of all "
                    "threads" +
                    oversubscribed(threads),
            .figures = {{"pbr-0.4.0/interleaved/T=4", "ns_per_op", "faithful", threads}},
            .entrants = std::move(all),
            .rounds = report_repeats,
            .weight = 4};
}

experiment corrected(effort how, std::size_t live)
{
    std::string const name =
        "pbr-0.4.0/interleaved/T=4" + (live == 1 ? "" : "/live=" + std::to_string(live));
    using contenders = shared_seed_contenders::with<one_a_thread<seed_pool<sync::none>>>;
    return {.asks = "pbr v0.4.0, shared pool, corrected: 4 threads that stay keep " +
                    std::to_string(live) +
                    " blocks each, of which a random one is freed and another allocated and "
                    "written to. ns a pair: wall time / pairs of all threads, and CPU time" +
                    oversubscribed(threads),
            .figures = {{name, "ns_per_op", "corrected", threads},
                        {name, "cpu_ns_per_op", "corrected", threads}},
            .entrants = entrants_of(contenders{}, {.live = live, .threads = threads},
                                    [how, live]<class C>() -> round_function {
                                        return [p = std::make_shared<pairs<C>>(threads, live),
                                                ns = window_ns(how)](std::span<double> out) {
                                            p->round(ns, out);
                                        };
                                    }),
            .rounds = 26,
            .weight = 3};
}

} // namespace

std::vector<experiment> seeds_pbr_threads(effort how)
{
    return {faithful(how), corrected(how, 1), corrected(how, 64)};
}

} // namespace mallard::bench
