// Measures many blocks in use. Their sizes come from a table.
#include <bench/barrier.hpp>
#include <bench/measure.hpp>
#include <bench/multipool/contenders.hpp>

#include <memory>

namespace mallard::bench {
namespace {

constexpr std::size_t hold_count = 1000;

template <class C>
struct hold_state {
    hold_state(effort how, table<std::uint32_t> wanted)
        : sizes(std::move(wanted)), slots(sizes.size()),
          shuffled(indices(sizes.size(), order::shuffled)), timed(how)
    {
    }

    void once(std::uint64_t value)
    {
        for (std::size_t i = 0; i < slots.size(); ++i) {
            slots[i] = memory.allocate(sizes[i], 8);
            touch(slots[i], value);
        }
        for (std::uint32_t const i : shuffled)
            memory.deallocate(slots[i], sizes[i], 8);
    }

    C memory;
    table<std::uint32_t> sizes;
    table<void*> slots;
    table<std::uint32_t> shuffled;
    batch timed;
};

/// Measures 1,000 blocks of mixed sizes up to `largest`, or of 32 bytes if `largest` is 0.
experiment hold(effort how, std::size_t largest, const char* name, const char* sizes)
{
    return {.asks = std::string("1,000 blocks of ") + sizes +
                    " are allocated and written to, then freed in random order. ns a pair",
            .figures = {{name}},
            .entrants =
                entrants_of(multipool_contenders{}, {order::shuffled, hold_count},
                            [how, largest]<class C>() -> round_function {
                                std::size_t const count = how.count(hold_count);
                                table<std::uint32_t> wanted =
                                    mixed_sizes(count, std::max<std::size_t>(largest, 16));
                                if (largest == 0)
                                    std::fill(wanted.begin(), wanted.end(), 32u);
                                return [s = std::make_shared<hold_state<C>>(
                                            how, std::move(wanted))](std::span<double> out) {
                                    double const ns = s->timed.ns_of_one([&](std::size_t times) {
                                        for (std::size_t t = 0; t < times; ++t)
                                            s->once(t);
                                    });
                                    out[0] = ns / static_cast<double>(s->slots.size());
                                };
                            })};
}

struct block {
    void* data;
    std::size_t bytes;
};

template <class C>
struct replace_state {
    static constexpr std::size_t steps = 1 << 16; // after these steps the table begins again

    replace_state(effort how, std::size_t count)
        : slots(count), sizes(mixed_sizes(steps, 1024)), which(random_indices(steps, count)),
          timed(how)
    {
        for (std::size_t i = 0; i < count; ++i)
            slots[i] = fresh(sizes[i % steps], 0);
    }
    replace_state(const replace_state&) = delete;
    replace_state& operator=(const replace_state&) = delete;
    ~replace_state()
    {
        for (block const b : slots)
            memory.deallocate(b.data, b.bytes, 8);
    }

    block fresh(std::size_t bytes, std::uint64_t value)
    {
        void* const data = memory.allocate(bytes, 8);
        touch(data, value);
        return {data, bytes};
    }
    void step()
    {
        // Shifts the sizes by one in each pass. Otherwise a slot would always have the same size.
        block& b = slots[which[at % steps]];
        std::size_t const bytes = sizes[(at + at / steps) % steps];
        at += 1;
        memory.deallocate(b.data, b.bytes, 8);
        b = fresh(bytes, at);
    }

    C memory;
    table<block> slots;
    table<std::uint32_t> sizes;
    table<std::uint32_t> which;
    batch timed;
    std::size_t at = 0;
};

experiment replace(effort how, std::size_t live)
{
    return {.asks = "Of " + std::to_string(live) +
                    " live blocks of 8 to 1,024 bytes, a random one is freed and one of another "
                    "size is allocated and written to. ns a pair",
            .figures = {{"replace/" + std::to_string(live)}},
            .entrants = entrants_of(multipool_contenders{}, {order::shuffled, live},
                                    [how, live]<class C>() -> round_function {
                                        return [s = std::make_shared<replace_state<C>>(
                                                    how, how.count(live))](std::span<double> out) {
                                            out[0] = s->timed.ns_of_one([&](std::size_t count) {
                                                for (std::size_t i = 0; i < count; ++i)
                                                    s->step();
                                            });
                                        };
                                    }),
            .weight = live > 1000 ? 2.0 : 1.0};
}

} // namespace

std::vector<experiment> multipool_mixed(effort how)
{
    return {hold(how, 0, "hold/1000x32B", "32 bytes"),
            hold(how, 1024, "hold/1000-mixed", "8 to 1,024 bytes"), replace(how, 256),
            replace(how, 100'000)};
}

} // namespace mallard::bench
