// Measures a block that is allocated and freed immediately, and a few blocks at a time. A program
// may put the pool in one of three places, and each is measured.
#include <bench/barrier.hpp>
#include <bench/measure.hpp>
#include <bench/pool/contenders.hpp>

#include <memory>

namespace mallard::bench {
namespace {

template <class C>
[[gnu::always_inline]] inline void pairs(C& blocks, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        blocks.deallocate(keep(blocks.allocate()));
}

// The whole loop is in one function, so that the compiler can optimise as in a program. For a pool
// on the stack, it may keep the head of the list in a register.
struct on_stack {
    template <class C>
    [[gnu::noinline]] static double run(batch& timed)
    {
        C blocks(1);
        return timed.ns_of_one([&](std::size_t count) { pairs(blocks, count); });
    }
};

struct on_heap {
    template <class C>
    [[gnu::noinline]] static double run(batch& timed)
    {
        std::unique_ptr<C> const blocks(keep(new C(1)));
        return timed.ns_of_one([&](std::size_t count) { pairs(*blocks, count); });
    }
};

struct as_static {
    template <class C>
    [[gnu::noinline]] static double run(batch& timed)
    {
        // The pool is in static storage, but each round constructs and destroys it, so that every
        // round starts with a new pool.
        alignas(C) static std::byte storage[sizeof(C)];
        C& blocks = *::new (static_cast<void*>(storage)) C(1);
        double const ns = timed.ns_of_one(
            [&](std::size_t count) { pairs(*std::launder(reinterpret_cast<C*>(storage)), count); });
        blocks.~C();
        return ns;
    }
};

template <std::size_t Bytes, class Place>
experiment pair(effort how, const char* suffix, const char* place)
{
    return {.asks = std::string("What do allocate and deallocate cost when the block is in L1 and "
                                "the pool ") +
                    place + "? ns a pair",
            .figures = {{"pair/" + std::to_string(Bytes) + "B" + suffix}},
            .entrants =
                entrants_of(pool_contenders<Bytes>{}, {}, [how]<class C>() -> round_function {
                    return [timed = batch(how)](std::span<double> out) mutable {
                        out[0] = Place::template run<C>(timed);
                    };
                })};
}

template <class C, std::size_t Burst>
[[gnu::noinline]] double bursts(batch& timed)
{
    C blocks(Burst);
    void* taken[Burst];
    return timed.ns_of_one([&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            for (void*& block : taken)
                block = keep(blocks.allocate());
            for (void* const block : taken)
                blocks.deallocate(keep(block));
        }
    }) / Burst;
}

experiment burst(effort how)
{
    return {.asks = "What does a pair cost when 24 blocks are allocated, then 24 freed? The "
                    "one-block pair measures store forwarding as much as design. ns a pair",
            .figures = {{"burst/24"}},
            .entrants = entrants_of(pool_contenders<64>{}, {}, [how]<class C>() -> round_function {
                return [timed = batch(how)](std::span<double> out) mutable {
                    out[0] = bursts<C, 24>(timed);
                };
            })};
}

} // namespace

std::vector<experiment> pool_pairs(effort how)
{
    return {pair<64, on_stack>(how, "", "stands on the stack"),
            pair<32, on_stack>(how, "", "stands on the stack"),
            pair<64, on_heap>(how, "/heap", "stands on the heap"),
            pair<32, on_heap>(how, "/heap", "stands on the heap"),
            pair<64, as_static>(how, "/static", "is a static object"),
            pair<32, as_static>(how, "/static", "is a static object"),
            burst(how)};
}

} // namespace mallard::bench
