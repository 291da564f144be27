// mallard-bench-worker does one job with the malloc of the process, like any program. The malloc of
// a contender is preloaded. The suites communicate with this process over pipes.
#include <bench/support/memory_use.hpp>
#include <bench/table.hpp>
#include <bench/worker/job.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using namespace mallard::bench;

int say_whose_malloc()
{
    Dl_info found{};
    dladdr(dlsym(RTLD_DEFAULT, "malloc"), &found);
    std::fputs(found.dli_fname == nullptr ? "nobody" : found.dli_fname, stdout);
    return 0;
}

job const* find_job(std::string_view name)
{
    for (auto const jobs :
         {pair_jobs(), bulk_jobs(), replace_jobs(), growth_jobs(), thread_jobs(), share_jobs(),
          stress_jobs(), rest_jobs(), count_jobs(), matrix_jobs()}) {
        for (job const& j : jobs) {
            if (j.name == name)
                return &j;
        }
    }
    return nullptr;
}

void answer(std::span<const double> figures)
{
    // Ignores an error. If no process reads the pipe, no further request will arrive.
    [[maybe_unused]] ssize_t const written =
        write(STDOUT_FILENO, figures.data(), figures.size_bytes());
}

// Subtracts the KiB of the tables, which belong to the benchmark and not to the allocator.
double beyond_tables(std::size_t kib, std::size_t table_bytes)
{
    return static_cast<double>(kib) - static_cast<double>(table_bytes) / 1024;
}

// Returns the peak and the current KiB. The kernel counts the peak roughly and the current memory
// exactly, so the peak is raised to at least the current memory.
std::array<double, 2> memory()
{
    static std::size_t most = 0;
    std::size_t const now = resident_kib_exactly();
    most = std::max({most, now, peak_resident_kib()});
    return {beyond_tables(most, table_bytes::peak), beyond_tables(now, table_bytes::now)};
}

void serve(round_function round, std::span<double> figures, effort how)
{
    for (char asked = 0; read(STDIN_FILENO, &asked, 1) == 1;) {
        switch (asked) {
        case request::round:
            round(figures);
            answer(figures);
            break;
        case request::memory:
            answer(memory());
            break;
        case request::finish:
            round = nullptr;
            break;
        case request::rest:
            usleep(how.is_smoke() ? 1000 : 1'000'000);
            break;
        default:
            std::abort();
        }
    }
}

} // namespace

int main(int argc, char** argv)
{
    if (argc == 2 && std::string_view(argv[1]) == "whose-malloc")
        return say_whose_malloc();
    job const* const found = argc == 10 ? find_job(argv[1]) : nullptr;
    if (found == nullptr) {
        std::fputs("mallard-bench-worker: no such job\n"
                   "  nothing was done\n"
                   "  help: `./x bench malloc` starts it\n",
                   stderr);
        return 2;
    }
    std::array<std::size_t, 8> n{};
    for (std::size_t i = 0; i < n.size(); ++i)
        n[i] = std::strtoul(argv[2 + i], nullptr, 10);
    task const what{found->name, n[0], n[1], n[2], n[3], n[4], n[5]};
    effort const how{.kind = static_cast<effort::size>(n[7])};
    std::array<double, 8> figures{};
    serve(found->prepare(what, how), std::span(figures).first(n[6]), how);
    return 0;
}
