// mallard-bench-lab does one measurement of the benchmarks of J. Lakos (ACCU 2017): one case under
// one strategy, once, in a new process. `./x bench lakos1` starts it.
#include <bench/lab/task.hpp>

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

using namespace mallard::bench::lab;

constexpr std::size_t figures_max = 40;

struct benchmark {
    std::string_view name;
    void (*run)(task const&, figures);
};

constexpr benchmark benchmarks[] = {
    {"growth", growth},
    {"locality", locality},
    {"utilization", utilization},
    {"contention", contention},
};

int usage()
{
    std::fputs("mallard-bench-lab: no such benchmark\n"
               "  nothing was done\n"
               "  help: `./x bench lakos1` starts it\n",
               stderr);
    return 2;
}

// Prints the figures on one line. If there are none, prints a line that begins with '!' and has the
// reason. Exhausting the memory is a result, not a failure of the process.
int run(benchmark const& what, task const& asked)
{
    std::array<double, figures_max> results{};
    try {
        what.run(asked, results);
    } catch (std::bad_alloc const&) {
        std::puts("!FAIL: out of memory");
        return 0;
    } catch (not_played const& reason) {
        std::printf("!%s\n", reason.what());
        return 0;
    }
    for (double const figure : results)
        std::printf("%.17g ", figure);
    std::puts("");
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 4)
        return usage();
    task asked{.who = {argv[2], std::atoi(argv[3])}};
    for (int i = 4; i < argc; ++i)
        asked.numbers.at(static_cast<std::size_t>(i - 4)) = std::strtoul(argv[i], nullptr, 10);
    for (benchmark const& each : benchmarks) {
        if (each.name == argv[1])
            return run(each, asked);
    }
    return usage();
}
