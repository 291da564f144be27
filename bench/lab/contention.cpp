#include <bench/lab/contention.hpp>

#include <bench/clock.hpp>
#include <bench/lab/counters.hpp>

namespace mallard::bench::lab {
namespace {

using kind = contention_cell::kind;

/// Measures as Lakos does: starting and joining the threads is part of the measured time. A sample
/// is ten rounds. If there are fewer rounds, the time is scaled to ten.
template <class Memory>
double seconds_of_ten_rounds(contention_cell const& cell)
{
    std::array<double, 7> samples{};
    for (double& sample : samples) {
        double const from = wall_ns();
        for (std::size_t round = 0; round < cell.rounds; ++round) {
            std::vector<std::thread> threads;
            for (std::size_t i = 0; i < cell.threads; ++i)
                threads.emplace_back([&] { live_alone<Memory>(cell); });
            for (std::thread& t : threads)
                t.join();
        }
        sample = (wall_ns() - from) * 1e-9 * 10 / static_cast<double>(cell.rounds);
    }
    std::ranges::sort(samples);
    return (samples[2] + samples[3]) / 2; // Lakos's program also returns the mean of these two
}

/// Measures threads that exist before the clock starts and that begin together. Each thread calls
/// `work(thread)` as often as is needed for a repetition to take a tenth of the time.
///
/// Returns the medians over the repetitions: the wall ns of one operation of a thread, and the CPU
/// ns of all threads for one operation.
template <class Work>
void repeat(contention_cell const& cell, figures out, Work work)
{
    crew team(cell.threads);
    std::size_t times = 1;
    auto const repetition = [&] {
        return team.run([&](std::size_t thread) {
            for (std::size_t i = 0; i < times; ++i)
                work(thread);
        });
    };
    while (repetition().wall_ns < cell.least_ns / 10)
        times *= 2;
    std::vector<double> wall;
    std::vector<double> cpu;
    for (double spent = 0; spent < cell.least_ns || wall.size() < 5;) {
        work_time const taken = repetition();
        spent += taken.wall_ns;
        double const operations = static_cast<double>(times * cell.operations);
        wall.push_back(taken.wall_ns / operations);
        cpu.push_back(taken.cpu_ns / operations / static_cast<double>(cell.threads));
    }
    std::size_t const at = 0;
    for (auto [samples, figure] : {std::pair(&wall, at), std::pair(&cpu, at + 1)}) {
        auto const middle = samples->begin() + static_cast<std::ptrdiff_t>(samples->size() / 2);
        std::ranges::nth_element(*samples, middle);
        out[figure] = *middle;
    }
}

template <class Memory>
void share(contention_cell const& cell, figures out)
{
    Memory memory(budget{});
    if (cell.of == kind::remote) {
        ring_of_threads<Memory> all(memory, cell);
        repeat(cell, out, [&](std::size_t thread) { all.work(thread); });
    } else if (cell.of == kind::sharing) {
        repeat(cell, out, [&](std::size_t) { write_to_its_own(memory, cell); });
    } else {
        repeat(cell, out, [&](std::size_t) { take_and_give(memory, cell); });
    }
}

template <class Memory>
void keep_apart(contention_cell const& cell, figures out)
{
    if (cell.of == kind::faithful)
        out[0] = seconds_of_ten_rounds<Memory>(cell);
    else if (cell.of == kind::sharing)
        repeat(cell, out, [&](std::size_t) {
            Memory memory(budget{});
            write_to_its_own(memory, cell);
        });
    else
        repeat(cell, out, [&](std::size_t) { live_alone<Memory>(cell); });
}

} // namespace

void contention(task const& asked, figures out)
{
    contention_cell const cell{.of = static_cast<kind>(asked.numbers[0]),
                               .operations = asked.numbers[1],
                               .block = asked.numbers[2],
                               .threads = asked.numbers[3],
                               .rounds = asked.numbers[4],
                               .least_ns = static_cast<double>(asked.numbers[5])};
    baseline const before;
    bool const is_alone = cell.of == kind::faithful || cell.of == kind::corrected ||
                          (cell.of == kind::sharing && asked.who.library == "mallard");
    if (is_alone)
        play(
            asked.who, [](auto f) { cast_all(f); },
            [&]<class Memory> { keep_apart<Memory>(cell, out); });
    else
        play(
            asked.who, [](auto f) { cast_shared(f); },
            [&]<class Memory> { share<Memory>(cell, out); });
    if (cell.of != kind::faithful)
        before.report(out.subspan(2, 2));
}

} // namespace mallard::bench::lab
