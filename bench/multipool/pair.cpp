// Measures an allocation and the free of the same block, so that one block is in use at a time. The
// size of the block is a constant, as for a container's node.
#include <bench/barrier.hpp>
#include <bench/measure.hpp>
#include <bench/multipool/contenders.hpp>

#include <memory>

namespace mallard::bench {
namespace {

template <class C>
struct pair_state {
    explicit pair_state(effort how) : timed(how) {}

    C memory;
    batch timed;
};

template <std::size_t Bytes>
experiment pair(effort how)
{
    return {.asks = "What do allocate and deallocate of " + std::to_string(Bytes) +
                    " bytes cost when the block is in L1? ns a pair",
            .figures = {{"pair/" + std::to_string(Bytes) + "B"}},
            .entrants = entrants_of(multipool_contenders{}, {}, [how]<class C>() -> round_function {
                return [s = std::make_shared<pair_state<C>>(how)](std::span<double> out) {
                    out[0] = s->timed.ns_of_one([&](std::size_t count) {
                        for (std::size_t i = 0; i < count; ++i)
                            s->memory.deallocate(keep(s->memory.allocate(Bytes, 8)), Bytes, 8);
                    });
                };
            })};
}

} // namespace

std::vector<experiment> multipool_pairs(effort how)
{
    return {pair<8>(how),   pair<16>(how),  pair<32>(how),   pair<64>(how),   pair<128>(how),
            pair<256>(how), pair<512>(how), pair<1024>(how), pair<2048>(how), pair<4096>(how)};
}

} // namespace mallard::bench
