#include <bench/lab/utilization.hpp>

#include <algorithm>
#include <numeric>
#include <string>

namespace mallard::bench::lab {
namespace {

/// Returns the seconds from construction to destruction of an allocator: the mean over `lives`
/// allocators, without the shortest and the longest.
template <class Life>
double mean_of_lives(std::size_t lives, Life life)
{
    std::vector<double> seconds(lives);
    for (double& each : seconds) {
        double const from = wall_ns();
        life();
        each = (wall_ns() - from) * 1e-9;
    }
    std::ranges::sort(seconds);
    return std::reduce(seconds.begin() + 1, seconds.end() - 1) / static_cast<double>(lives - 2);
}

struct measured {
    double ns = 0;
    double faults = 0;
    std::size_t lives = 0;
};

/// Constructs, uses and destroys one allocator after another for `least_ns`. The first allocator
/// counts only if it alone took `least_ns`.
template <class Life>
measured for_a_while(double least_ns, Life life)
{
    measured all;
    auto const one = [&] {
        std::size_t const faults = page_faults();
        double const from = cpu_ns();
        life();
        all.ns += cpu_ns() - from;
        all.faults += static_cast<double>(page_faults() - faults);
        all.lives += 1;
    };
    one();
    if (all.ns >= least_ns)
        return all;
    all = {};
    while (all.ns < least_ns)
        one();
    return all;
}

/// Writes the figures. The faithful variant has the seconds from construction to destruction, as in
/// Lakos's program. The corrected variant has the ns to allocate and free a block, page faults for
/// 1,000 blocks, the peak in KiB, and the KiB after destruction.
template <class Life>
void report(utilization_cell const& cell, Life life, figures out)
{
    if (cell.lives != 0) {
        out[0] = mean_of_lives(cell.lives, life);
        return;
    }
    baseline const before;
    measured const all = for_a_while(cell.least_ns, life);
    double const operations = static_cast<double>(all.lives * cell.count());
    out[0] = all.ns / operations;
    out[1] = all.faults * 1000 / operations;
    before.report(out.subspan(2));
}

// Returns the limit of memory: the limit of Lakos's `ulimit -v`, or a limit that is safe on this
// machine.
std::size_t kib_max(utilization_cell const& cell)
{
    return cell.lives != 0 ? 5'000'000 : memory_limit::most_kib;
}

// Rejects a case that would certainly run out of memory. A monotonic allocator keeps all allocated
// memory, so the required memory is known beforehand.
void refuse_in_vain(part who, utilization_cell const& cell)
{
    bool const keeps_all = who.strategy == 3 || who.strategy == 5;
    if (keeps_all && who.library != "mallard/reset" && cell.total / 1024 >= kib_max(cell))
        throw not_played("FAIL, computed and not run: it would hold no less than " +
                         std::to_string(kib_max(cell)) + " KiB");
}

} // namespace

void utilization(task const& asked, figures out)
{
    utilization_cell const cell{.total = asked.numbers[0],
                                .active = asked.numbers[1],
                                .block = asked.numbers[2],
                                .lives = asked.numbers[3],
                                .least_ns = static_cast<double>(asked.numbers[4])};
    refuse_in_vain(asked.who, cell);
    std::vector<void*> blocks(cell.held());
    memory_limit const limit(
        cell.lives != 0 ? memory_limit::what::addresses : memory_limit::what::data, kib_max(cell));
    if (asked.who == part{"mallard/reset", 3}) {
        report(cell, [&] { live_in_generations<mallard_typed<arena<>>>(cell, blocks); }, out);
        return;
    }
    play(
        asked.who, [](auto f) { cast_all(f); },
        [&]<class Memory> { report(cell, [&] { live<Memory>(cell, blocks); }, out); });
}

} // namespace mallard::bench::lab
