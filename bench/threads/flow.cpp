// Measures blocks that flow one way for a minute, with a few thousand blocks in use at any time.
// The case shows whether memory stays bounded if one thread allocates and another frees.
#include <bench/support/memory_use.hpp>
#include <bench/threads/hand_over.hpp>

#include <chrono>
#include <cstdio>

namespace mallard::bench {
namespace {

std::vector<double> sample_seconds(effort how)
{
    if (how.is_smoke())
        return {0.01, 0.02};
    if (how.is_brief())
        return {0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2};
    return {0.5, 1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60};
}

template <class C>
round_function flow_round(effort how)
{
    auto const flow = std::make_shared<hand_over<C>>(1, 1);
    (void)resident_kib_exactly(); // the first call allocates memory
    auto const before = static_cast<double>(resident_kib_exactly());
    flow->make_blocks();
    return [flow, before, times = sample_seconds(how)](std::span<double> out) {
        flow->start();
        auto const from = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < times.size(); ++i) {
            std::this_thread::sleep_until(from + std::chrono::duration<double>(times[i]));
            out[2 + i] = static_cast<double>(resident_kib_exactly()) - before;
        }
        flow->finish(out);
    };
}

experiment flow(effort how)
{
    std::vector<figure> figures = costs("flow", 2);
    for (double const t : sample_seconds(how)) {
        char text[32];
        std::snprintf(text, sizeof text, "t=%gs", t);
        figures.push_back({"flow", "rss_kib", text, 2});
    }
    return {.asks =
                "One thread allocates blocks of 64 bytes, another frees them; a queue between "
                "them holds 8,192. How much memory is held over time, each in a separate process? "
                "And ns a block",
            .figures = std::move(figures),
            .entrants = entrants_of(
                contender_list<heap_blocks<glibc_tag>::of<block_bytes>,
                               heap_blocks<mimalloc_tag>::of<block_bytes>, cached_contender>{},
                {.live = 8192, .threads = 2, .crosses = true},
                [how]<class C>() { return flow_round<C>(how); }),
            .fresh_process = true,
            .once = true};
}

} // namespace

std::vector<experiment> threads_flow(effort how)
{
    return {flow(how)};
}

} // namespace mallard::bench
