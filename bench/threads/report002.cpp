// The benchmark of the thread-policy report (report 002), as published.
//
// Concurrent: threads are started, and a flag on which they spin releases them. The clock runs from
// before the first start to after the last join, so the figure includes the start and exit of
// threads. The figure is wall time / pairs of all threads. Each table also has the pool without
// locks, measured with one thread. corrected.cpp has the corrected case.
//
// Bulk and interleaved are the report's table for one thread, in CPU time as in the pool suite.
#include <bench/threads/contenders.hpp>
#include <bench/threads/crew.hpp>
#include <bench/threads/report002.hpp>

#include <algorithm>
#include <memory>

namespace mallard::bench {
namespace {

constexpr std::size_t repeats = 9; // ten repetitions, of which the first does not count
constexpr std::size_t bulk_blocks = 1'000'000;

/// Returns the number of iterations of each thread. If there are more than four threads (the
/// report's number), all threads together do as many as four threads.
std::size_t iterations(effort how, std::size_t threads)
{
    std::size_t const most = how.is_brief() ? 100'000 : 1'000'000;
    return how.count(most * 4 / std::max<std::size_t>(threads, 4));
}

template <class... Contenders>
std::vector<entrant> concurrent_entrants(contender_list<Contenders...> who, effort how,
                                         std::size_t threads)
{
    return entrants_of(who, {.threads = threads}, [how, threads]<class C>() -> round_function {
        auto const slots = std::make_shared<table<void*>>(how.count(4096));
        return [how, threads, slots](std::span<double> out) {
            concurrent_round<C>(iterations(how, threads), threads, *slots, out);
        };
    });
}

experiment concurrent(effort how, std::size_t threads)
{
    std::vector<entrant> all = concurrent_entrants(shared_contenders{}, how, threads);
    all.push_back(concurrent_entrants(contender_list<none_contender>{}, how, 1).front());
    all.back().threads = 1;
    return {.asks = "Report 002, concurrent: " + std::to_string(threads) +
                    " threads share a pool of 4,096 blocks of 64 bytes; each does " +
                    std::to_string(iterations(how, threads)) +
                    " times allocate, write a byte, free; their start and end are timed, and none "
                    "is one thread. ns a pair: wall time / pairs of all threads",
            .figures = {{threads_name("report002/concurrent", threads), "ns_per_op", "faithful",
                         static_cast<int>(threads)}},
            .entrants = std::move(all),
            .rounds = repeats,
            .in_brief = threads == 4, // the number of threads in the report
            .weight = static_cast<double>(threads)};
}

template <class C>
round_function bulk_round(std::size_t count)
{
    return [slots = std::make_shared<table<void*>>(count)](std::span<double> out) {
        std::unique_ptr<C> const blocks = filled<C>(*slots);
        auto const all = static_cast<double>(slots->size());
        out[0] = ns_of([&] { fill(*blocks, *slots); }) / all;
        out[1] = ns_of([&] { empty(*blocks, *slots); }) / all;
    };
}

experiment bulk(effort how)
{
    return {
        .asks = "Report 002, bulk, one thread: 1,000,000 blocks of 64 bytes are allocated, then "
                "freed in the same order; a pool was filled before. ns a block",
        .figures = {{"report002/bulk-alloc/T1", "ns_per_op", "faithful"},
                    {"report002/bulk-free/T1", "ns_per_op", "faithful"}},
        .entrants = entrants_of(all_contenders{}, {.live = bulk_blocks},
                                [how]<class C>() { return bulk_round<C>(how.count(bulk_blocks)); }),
        .rounds = repeats,
        .in_brief = false,
        .weight = 3};
}

template <class C>
round_function interleaved_round(std::size_t count)
{
    auto const slots = std::make_shared<table<void*>>(16);
    return [count, slots, blocks = std::shared_ptr<C>(filled<C>(*slots))](std::span<double> out) {
        out[0] = ns_of([&] { interleave(*blocks, count); }) / static_cast<double>(count);
    };
}

experiment interleaved(effort how)
{
    return {.asks = "Report 002, interleaved, one thread: allocate, write a byte, free; one block "
                    "live. ns a pair",
            .figures = {{"report002/interleaved/T1", "ns_per_op", "faithful"}},
            .entrants =
                entrants_of(all_contenders{}, {},
                            [how]<class C>() { return interleaved_round<C>(iterations(how, 1)); }),
            .rounds = repeats};
}

} // namespace

std::vector<experiment> threads_report002(effort how)
{
    std::vector<experiment> all{bulk(how), interleaved(how)};
    for (std::size_t const threads : thread_counts(1, 16))
        all.push_back(concurrent(how, threads));
    return all;
}

} // namespace mallard::bench
