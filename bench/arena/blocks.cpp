// Measures the allocation of one block from an arena that already has memory. The memory is a 16
// KiB buffer of the caller. Each round fills the buffer many times.
#include <bench/arena/contenders.hpp>
#include <bench/barrier.hpp>
#include <bench/measure.hpp>

namespace mallard::bench {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{16} << 10;

struct buffer_state {
    explicit buffer_state(effort how) : bytes(buffer_bytes), timed(how) {}

    table<std::byte> bytes;
    batch timed;
};

template <class C, std::size_t Bytes>
[[gnu::noinline]] double constant_blocks(buffer_state& s)
{
    constexpr std::size_t count = buffer_bytes / Bytes - 16;
    constexpr std::size_t align = Bytes % 16 == 0 ? 16 : 8;
    C arena({s.bytes.begin(), s.bytes.size()});
    double const ns = s.timed.ns_of_one([&](std::size_t fills) {
        for (std::size_t f = 0; f < fills; ++f) {
            arena.reset();
            for (std::size_t i = 0; i < count; ++i)
                touch(arena.allocate(Bytes, align), i);
        }
    });
    return ns / count;
}

template <std::size_t Bytes>
experiment constant(effort how)
{
    return {.asks = "What does a block cost whose layout, " + std::to_string(Bytes) +
                    " bytes, is known when compiling? Written to; 16 KiB of the caller's are "
                    "filled, then reset. ns a block",
            .figures = {{"constant/" + std::to_string(Bytes) + "B"}},
            .entrants = entrants_of(arena_contenders{}, {}, [how]<class C>() -> round_function {
                return [s = std::make_shared<buffer_state>(how)](std::span<double> out) {
                    out[0] = constant_blocks<C, Bytes>(*s);
                };
            })};
}

struct shape {
    std::uint16_t bytes;
    std::uint16_t align;
};

/// Layouts of 8 to 64 bytes in random order. The order repeats only after `fills` rounds, because
/// the branch predictor would learn a short sequence.
struct mixed_state : buffer_state {
    mixed_state(effort how, std::size_t fills) : buffer_state(how), shapes(fills * blocks_in_fill)
    {
        random_numbers random(5);
        for (shape& s : shapes)
            s = {static_cast<std::uint16_t>(8 + random.below(57)),
                 static_cast<std::uint16_t>(1 << random.below(5))};
    }

    std::span<shape const> next_fill()
    {
        at = at + blocks_in_fill == shapes.size() ? 0 : at + blocks_in_fill;
        return {&shapes[at], blocks_in_fill};
    }

    static constexpr std::size_t blocks_in_fill = 200; // blocks of at most 80 bytes with padding

    table<shape> shapes;
    std::size_t at = 0;
};

template <class C>
[[gnu::noinline]] double mixed_blocks(mixed_state& s)
{
    C arena({s.bytes.begin(), s.bytes.size()});
    double const ns = s.timed.ns_of_one([&](std::size_t fills) {
        for (std::size_t f = 0; f < fills; ++f) {
            arena.reset();
            for (shape const wanted : s.next_fill())
                touch_byte(arena.allocate(wanted.bytes, wanted.align), f);
        }
    });
    return ns / mixed_state::blocks_in_fill;
}

experiment mixed(effort how, std::size_t fills, const char* suffix, const char* words)
{
    return {.asks = std::string("What does a block cost whose layout comes from a table, 8 to 64 "
                                "bytes aligned to 1 to 16, ") +
                    words + "? A byte written. ns a block",
            .figures = {{std::string("unknown/8-64B") + suffix}},
            .entrants =
                entrants_of(arena_contenders{}, {}, [how, fills]<class C>() -> round_function {
                    return [s = std::make_shared<mixed_state>(how, fills)](std::span<double> out) {
                        out[0] = mixed_blocks<C>(*s);
                    };
                })};
}

} // namespace

std::vector<experiment> arena_blocks(effort how)
{
    return {constant<8>(how),
            constant<16>(how),
            constant<24>(how),
            constant<64>(how),
            mixed(how, 500, "", "100,000 layouts long"),
            mixed(how, 1, "/repeating", "the same 200 layouts again and again")};
}

} // namespace mallard::bench
