// Measures three uses of an arena: growing the last block, rewinding to a mark, and building
// strings.
#include <bench/arena/contenders.hpp>
#include <bench/barrier.hpp>
#include <bench/measure.hpp>

#include <cstring>
#include <string>

namespace mallard::bench {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

struct buffer_state {
    explicit buffer_state(effort how) : bytes(buffer_bytes), timed(how) {}

    table<std::byte> bytes;
    batch timed;
};

constexpr std::size_t grow_step = 16;
constexpr std::size_t grow_steps = 255; // the block grows to 4 KiB

/// Grows a block in place if the arena can do that. Otherwise allocates a larger block and copies
/// the bytes, as a vector does.
template <class C>
void* grown(C& arena, void* block, std::size_t from, std::size_t to)
{
    constexpr std::size_t align = 8;
    if constexpr (requires { arena.try_expand(block, from, to, align); }) {
        if (arena.try_expand(block, from, to, align))
            return block;
    }
    void* const larger = arena.allocate(to, align);
    std::memcpy(larger, block, from);
    arena.deallocate(block, from, align);
    return larger;
}

template <class C>
[[gnu::noinline]] double grow_last(buffer_state& s)
{
    C arena({s.bytes.begin(), s.bytes.size()});
    double const ns = s.timed.ns_of_one([&](std::size_t times) {
        for (std::size_t t = 0; t < times; ++t) {
            arena.reset();
            std::size_t bytes = grow_step;
            void* block = arena.allocate(bytes, 8);
            for (std::size_t i = 0; i < grow_steps; ++i, bytes += grow_step) {
                block = keep(grown(arena, block, bytes, bytes + grow_step));
                touch(static_cast<std::byte*>(block) + bytes, i);
            }
        }
    });
    return ns / grow_steps;
}

constexpr std::size_t scope_blocks = 8;

template <class C>
[[gnu::noinline]] double scopes(buffer_state& s)
{
    C arena({s.bytes.begin(), s.bytes.size()});
    return s.timed.ns_of_one([&](std::size_t times) {
        for (std::size_t t = 0; t < times; ++t) {
            auto const mark = arena.mark();
            for (std::size_t i = 0; i < scope_blocks; ++i)
                touch(arena.allocate(32, 8), i);
            arena.rewind(mark);
        }
    });
}

constexpr std::size_t string_count = 64;
constexpr std::size_t string_pieces = 64;

template <class C>
[[gnu::noinline]] double strings(buffer_state& s)
{
    C arena({s.bytes.begin(), s.bytes.size()});
    auto const allocator = allocator_for<char>(arena);
    using allocator_type = std::remove_const_t<decltype(allocator)>;
    using string = std::basic_string<char, std::char_traits<char>, allocator_type>;
    double const ns = s.timed.ns_of_one([&](std::size_t times) {
        for (std::size_t t = 0; t < times; ++t) {
            for (std::size_t i = 0; i < string_count; ++i) {
                string text(allocator);
                for (std::size_t p = 0; p < string_pieces; ++p)
                    text.append("sixteen letters,");
                keep(text.data());
            }
            arena.reset();
        }
    });
    return ns / (string_count * string_pieces);
}

template <class Measure>
experiment use(effort how, const char* name, const char* asks, Measure measure)
{
    return {.asks = asks,
            .figures = {{name}},
            .entrants =
                entrants_of(arena_contenders{}, {}, [how, measure]<class C>() -> round_function {
                    return
                        [measure, s = std::make_shared<buffer_state>(how)](std::span<double> out) {
                            out[0] = measure.template operator()<C>(*s);
                        };
                })};
}

} // namespace

std::vector<experiment> arena_uses(effort how)
{
    return {
        use(how, "grow-last/16B-to-4KiB",
            "The last block grows from 16 bytes to 4 KiB by 16 at a time, the new bytes written "
            "to: in place, or by copying where the arena cannot. ns a step",
            []<class C>(buffer_state& s) { return grow_last<C>(s); }),
        use(how, "mark-rewind/8x32B",
            "A mark, eight blocks of 32 bytes written to, and back to the mark. ns for all of it",
            []<class C>(buffer_state& s) -> double {
                if constexpr (requires(C& c) { c.rewind(c.mark()); })
                    return scopes<C>(s);
                else
                    throw cannot_run("it has no marks");
            }),
        use(how, "strings/append",
            "64 strings are built of 64 pieces of 16 letters each, then the arena is reset; "
            "std::basic_string with the allocator of each. ns a piece",
            []<class C>(buffer_state& s) { return strings<C>(s); }),
    };
}

} // namespace mallard::bench
