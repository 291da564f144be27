#include <bench/lab/locality.hpp>

#include <bench/lab/alone.hpp>

#include <algorithm>
#include <optional>

namespace mallard::bench::lab {
namespace {

// Measures as Lakos does. Whole programs are timed, and the times of the phases are computed as
// differences.
//
//     A = create, shuffle, access    B = create, access, shuffle    C = create, shuffle
//     degradation = (A - C) / (B - C)
//
// Each program runs in a separate process. C runs twice, once for each of the two differences.
template <class Memory>
double degradation_by_difference(locality_cell const& cell)
{
    enum class order { shuffle_access, access_shuffle, shuffle };
    auto const time_of = [&](order phases) {
        return in_a_child([&] {
            double const from = wall_ns();
            program<Memory> made(cell);
            auto const access = [&] {
                for (std::size_t r = 0; r < cell.repetitions; ++r) {
                    for (std::size_t part = 0; part < made.size(); ++part)
                        made.walk(part, cell.walks);
                }
            };
            if (phases == order::access_shuffle)
                access();
            made.shuffle(cell.moves);
            if (phases == order::shuffle_access)
                access();
            return wall_ns() - from;
        });
    };
    double const after = time_of(order::shuffle_access) - time_of(order::shuffle);
    double const before = time_of(order::access_shuffle) - time_of(order::shuffle);
    if (after <= 0 || before <= 0)
        throw not_played("the accesses are lost between the times of four processes");
    return after / before;
}

/// Measures the phases of a program, without the time that the measurements themselves need.
class stopwatch {
public:
    template <class F>
    void time(F f)
    {
        double const from = cpu_ns();
        f();
        ns_ += cpu_ns() - from;
    }
    double ns() const noexcept { return ns_; }

private:
    double ns_ = 0;
};

/// Measures the corrected variant, in which one process accesses the same lists before and after
/// the shuffle.
///
/// For each measurement, writes the degradation, the ns of an access, and cache
/// misses if they are counted. Then writes, for the whole run, the ns to build, shuffle and
/// destroy an element, page faults for 1,000 elements, and the peak in KiB.
template <class Memory>
void look_before_and_after(locality_cell const& cell, figures out)
{
    using lists = program<Memory>;
    baseline const before;
    double const elements = static_cast<double>(cell.elements);
    std::size_t const faults = page_faults();
    stopwatch life;
    std::optional<lists> made;
    life.time([&] { made.emplace(cell); });
    looker<Memory> eye(*made, cell);
    std::vector<double> fresh;
    for (std::size_t i = 0; i < cell.looks; ++i)
        fresh.push_back(eye.look(cell.walks >> i).ns);
    std::size_t at = 0;
    for (std::size_t s = 0; s < cell.shuffles; ++s) {
        life.time([&] { made->shuffle(cell.moves); });
        for (std::size_t i = 0; i < cell.looks; ++i) {
            auto const now = eye.look(cell.walks >> i);
            out[at++] = now.ns / fresh[i];
            out[at++] = now.ns;
            if (eye.sees_misses())
                out[at++] = now.misses;
        }
    }
    out[at + 1] = static_cast<double>(page_faults() - faults) * 1000 / elements;
    life.time([&] { made.reset(); });
    out[at] = life.ns() / elements;
    std::array<double, 2> peak_and_now{};
    before.report(peak_and_now);
    out[at + 2] = peak_and_now[0];
}

// A multipool for blocks of at most 32 bytes, such as the nodes of these lists. A user with very
// many nodes of this size would choose this multipool.
using small_multipool = multipool<default_heap, multipool_options{.largest = 32}>;
// The multipool for lists whose elements move to other lists (see docs/decisions/0027).
using queue_multipool = multipool<default_heap, multipool_options{.order = reuse::fifo}>;

template <class F>
void cast_locals(F f)
{
    cast_heap(f);
    cast_multipool(f);
    cast_multipool_over_arena(f);
    cast_abstract_base(f);
    cast_boost(f);
    cast_foonathan(f);
    f.template operator()<mallard_typed<small_multipool>>(part{"mallard/largest=32", 7});
    f.template operator()<mallard_typed<queue_multipool>>(part{"mallard/fifo", 7});
}

} // namespace

void locality(task const& asked, figures out)
{
    locality_cell const cell{.elements = asked.numbers[0],
                             .size = asked.numbers[1],
                             .moves = asked.numbers[2],
                             .shuffles = asked.numbers[3],
                             .walks = asked.numbers[4],
                             .looks = asked.numbers[5],
                             .repetitions = asked.numbers[6],
                             .accesses = asked.numbers[7]};
    memory_limit const limit(memory_limit::what::data, memory_limit::most_kib);
    play(
        asked.who, [](auto f) { cast_locals(f); },
        [&]<class Memory> {
            if (cell.repetitions != 0)
                out[0] = degradation_by_difference<Memory>(cell);
            else
                look_before_and_after<Memory>(cell, out);
        });
}

} // namespace mallard::bench::lab
