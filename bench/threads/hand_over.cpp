// Measures blocks that one thread allocates and another thread frees. A queue transfers the blocks.
#include <bench/threads/hand_over.hpp>

#include <bench/clock.hpp>

#include <chrono>

namespace mallard::bench {
namespace {

struct queue_alone {
    static constexpr const char* name = "queue-alone";
};

template <class C>
round_function hand_over_round(effort how, std::size_t producers, std::size_t consumers)
{
    auto const h = std::make_shared<hand_over<C>>(producers, consumers);
    h->make_blocks();
    return [h, ns = window_ns(how)](std::span<double> out) {
        h->start();
        std::this_thread::sleep_for(std::chrono::duration<double, std::nano>(ns));
        h->finish(out);
    };
}

experiment handed(effort how, std::size_t producers, std::size_t consumers)
{
    std::string const from = std::to_string(producers);
    std::string const to = std::to_string(consumers);
    std::size_t const threads = producers + consumers;
    return {.asks = "Producers (" + from +
                    ") allocate blocks of 64 bytes and write to them, "
                    "consumers (" +
                    to +
                    ") read and free them; a queue between them holds 8,192. limit/queue-alone "
                    "allocates nothing. ns a block: wall time / all blocks, and CPU time",
            .figures = costs("hand-over/" + from + ":" + to, threads),
            .entrants = entrants_for<recycler<queue_alone, block_bytes>>(
                {.live = 8192, .threads = threads, .crosses = true},
                [how, producers, consumers]<class C>() {
                    return hand_over_round<C>(how, producers, consumers);
                })};
}

} // namespace

std::vector<experiment> threads_hand_over(effort how)
{
    std::vector<experiment> all;
    for (std::size_t const threads : thread_counts(2)) {
        all.push_back(handed(how, 1, threads - 1));
        if (threads > 2)
            all.push_back(handed(how, threads - 1, 1));
    }
    return all;
}

} // namespace mallard::bench
