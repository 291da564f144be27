// The two cases about block sizes, for one size. Two source files include this header, so that they
// are compiled in parallel.
#pragma once

#include <bench/barrier.hpp>
#include <bench/measure.hpp>
#include <bench/pool/contenders.hpp>

#include <memory>

namespace mallard::bench {

inline constexpr std::size_t sizes_bulk = 1000;

template <class C>
struct sized_state {
    explicit sized_state(effort how)
        : blocks(how.count(sizes_bulk)), slots(how.count(sizes_bulk)), timed_pair(how),
          timed_bulk(how)
    {
    }

    double pair()
    {
        return timed_pair.ns_of_one([&](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
                blocks.deallocate(keep(blocks.allocate()));
        });
    }
    double bulk()
    {
        double const ns = timed_bulk.ns_of_one([&](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                for (void*& slot : slots) {
                    slot = blocks.allocate();
                    touch(slot, i);
                }
                for (void* const slot : slots)
                    blocks.deallocate(slot);
            }
        });
        return ns / static_cast<double>(slots.size());
    }

    C blocks;
    table<void*> slots;
    batch timed_pair;
    batch timed_bulk;
};

template <std::size_t Bytes>
experiment of_size(effort how)
{
    std::string const name = "size/" + std::to_string(Bytes) + "B";
    bool const is_usual = Bytes == 16 || Bytes == 128 || Bytes == 1024;
    return {.asks = "Blocks of " + std::to_string(Bytes) +
                    " bytes: what does a pair cost with one block live, and what when 1,000 are "
                    "allocated and written to, then freed in order? ns a pair",
            .figures = {{name + "/pair"}, {name + "/bulk"}},
            .entrants = entrants_of(pool_contenders<Bytes>{}, {order::forward, sizes_bulk},
                                    [how]<class C>() -> round_function {
                                        return [s = std::make_shared<sized_state<C>>(how)](
                                                   std::span<double> out) {
                                            out[0] = s->pair();
                                            out[1] = s->bulk();
                                        };
                                    }),
            .in_brief = is_usual};
}

} // namespace mallard::bench
