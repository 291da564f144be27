// Measures an arena that gets its memory from the heap. Some cases fill and reset the same arena
// many times, and others fill a new arena.
#include <bench/arena/contenders.hpp>
#include <bench/barrier.hpp>
#include <bench/measure.hpp>
#include <bench/warm_heap.hpp>

#include <memory>

namespace mallard::bench {
namespace {

constexpr std::size_t block_bytes = 64;

template <class C>
void fill(C& arena, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        touch(arena.allocate(block_bytes, 16), i);
}

std::string in_words(std::size_t bytes)
{
    return bytes >> 20 != 0 ? std::to_string(bytes >> 20) + "MiB"
                            : std::to_string(bytes >> 10) + "KiB";
}

template <class C>
struct reset_state {
    reset_state(effort how, std::size_t blocks)
        : count(how.count(blocks)), arena({}, (count + 1) * block_bytes), timed(how)
    {
    }

    std::size_t count;
    C arena;
    batch timed;
};

experiment reset_loop(effort how, std::size_t bytes)
{
    std::size_t const blocks = bytes / block_bytes;
    return {
        .asks = "One arena is filled with " + in_words(bytes) +
                " of 64-byte blocks, written to, and reset, over and over: does it keep its "
                "memory? ns a block",
        .figures = {{"reset/" + in_words(bytes)}},
        .entrants = entrants_of(arena_contenders{}, {}, [how, blocks]<class C>() -> round_function {
            return [s = std::make_shared<reset_state<C>>(how, blocks)](std::span<double> out) {
                double const ns = s->timed.ns_of_one([&](std::size_t times) {
                    for (std::size_t t = 0; t < times; ++t) {
                        fill(s->arena, s->count);
                        s->arena.reset();
                    }
                });
                out[0] = ns / static_cast<double>(s->count);
            };
        })};
}

struct fresh_state {
    fresh_state(effort how, std::size_t blocks, bool warm_source)
        : count(how.count(blocks)), warm(how, warm_source ? 4 * blocks * block_bytes : 0),
          timed(how)
    {
    }

    std::size_t count;
    warm_heap warm;
    batch timed;
};

template <class Contenders>
experiment fresh(effort how, std::size_t bytes, bool warm_source, Contenders contenders)
{
    std::size_t const blocks = bytes / block_bytes;
    return {.asks = "A new arena takes " + in_words(bytes) +
                    " of 64-byte blocks from the heap, written to, and goes" +
                    (warm_source ? "; the heap has the memory at hand" : "; page faults included") +
                    ". ns a block",
            .figures = {{"fresh/" + in_words(bytes)}},
            .entrants =
                entrants_of(contenders, {},
                            [how, blocks, warm_source]<class C>() -> round_function {
                                return [s = std::make_shared<fresh_state>(
                                            how, blocks, warm_source)](std::span<double> out) {
                                    double const ns = s->timed.ns_of_one([&](std::size_t times) {
                                        for (std::size_t t = 0; t < times; ++t) {
                                            C arena({}, (s->count + 1) * block_bytes);
                                            fill(arena, s->count);
                                        }
                                    });
                                    out[0] = ns / static_cast<double>(s->count);
                                };
                            }),
            .weight = bytes > (8 << 20) ? 4.0 : 1.0};
}

} // namespace

std::vector<experiment> arena_life(effort how)
{
    return {reset_loop(how, 64 << 10), reset_loop(how, 1 << 20),
            fresh(how, 1 << 20, true, arena_contenders{}),
            fresh(how, 64 << 20, false, arena_contenders::with<huge_arena>{})};
}

} // namespace mallard::bench
