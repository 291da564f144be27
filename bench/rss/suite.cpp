// The rss suite measures the resident memory of a malloc: the peak, the memory after all frees, and
// the memory after a second in which the program does nothing.
#include <bench/entrants.hpp>
#include <bench/preload/worker.hpp>
#include <bench/programs/run.hpp>
#include <bench/suites.hpp>

namespace mallard::bench {
namespace {

std::vector<figure> memory(std::string const& name, std::size_t threads)
{
    int const count = static_cast<int>(threads);
    return {{name, "peak_rss_kib", "", count},
            {name, "after_rss_kib", "", count},
            {name, "idle_rss_kib", "", count}};
}

load row(const char* name, const char* asks, task what)
{
    return {.asks = asks, .figures = memory(name, what.threads), .what = what};
}

std::vector<load> single_thread()
{
    std::vector<load> all{
        row("small", "3,000 blocks of 16-400 bytes, as a short tool has them",
            {.job = "rss/small", .bytes = 16, .most = 400, .count = 3000}),
        row("burst/16-512B",
            "1 GiB in blocks of 16 to 512 bytes, freed; an eighth of it with --short",
            {.job = "rss/burst", .bytes = 16, .most = 512, .count = 1024}),
        row("burst/64KiB-8MiB",
            "1 GiB in blocks of 64 KiB to 8 MiB, freed; an eighth of it with --short",
            {.job = "rss/burst", .bytes = 64 << 10, .most = 8 << 20, .count = 1024}),
        row("bulk/1Mx64B", "A million blocks of 64 bytes, freed",
            {.job = "rss/burst", .bytes = 64, .count = 61}),
        row("swings/1-64MiB", "Four blocks at a time of 1 to 64 MiB, allocated and freed in turn",
            {.job = "rss/swings", .bytes = 1 << 20, .count = 7}),
        row("fragmentation", "40,000 blocks, the sizes of which change from phase to phase",
            {.job = "rss/fragmentation", .count = 40'000}),
    };
    return all;
}

std::vector<load> several_threads()
{
    std::vector<load> all{
        row("idle-owner/256MiB",
            "One thread allocates 256 MiB in blocks of 16 to 1,024 bytes (64 with --short), "
            "another frees them; the first lives on and does nothing",
            {.job = "rss/idle-owner", .bytes = 16, .most = 1024, .count = 256, .threads = 2}),
        row("idle-threads/200", "200 threads that have a block of 64 bytes each",
            {.job = "rss/idle-threads", .bytes = 64, .threads = 200}),
        row("idle-threads/2000", "2,000 threads that have a block of 64 bytes each",
            {.job = "rss/idle-threads", .bytes = 64, .threads = 2000}),
    };
    for (load& l : all)
        l.stays = true;
    all.back().in_brief = false;
    return all;
}

void add_mixes(std::vector<load>& all, std::size_t threads)
{
    auto add = [&](const char* name, const char* asks, task what) {
        what.threads = threads;
        all.push_back(
            row((std::string(name) + "/T" + std::to_string(threads)).c_str(), asks, what));
        all.back().passes = 10;
        all.back().in_brief = threads == 8;
    };
    add("larson/8-1000B", "The larson-like case of the malloc suite",
        {.job = "threads/larson", .bytes = 8, .most = 1000, .count = 5000});
    add("rptest/8-16000B", "The rptest-like case of the malloc suite",
        {.job = "threads/batches", .bytes = 8, .most = 16'000, .count = 300, .variant = 2});
    add("mstress/8B-5MB", "The mstress-like case of the malloc suite",
        {.job = "threads/generations", .count = 200});
}

// Measures a program that allocates almost nothing. Unlike the other programs, it does not sleep
// for a second.
experiment nothing_at_all()
{
    experiment e{.asks = "/bin/true: what it costs to be loaded",
                 .figures = {{"true", "peak_rss_kib"}},
                 .entrants = {},
                 .rounds = 5,
                 .with_memory = false};
    for (preload const& with : preloads()) {
        e.entrants.push_back(
            {.name = [&with] { return with.name; },
             .prepare = [&with]() -> round_function {
                 insist_on(with);
                 return [&with](std::span<double> out) {
                     out[0] = running_program({"/bin/true"}, with.library).wait().peak_kib;
                 };
             }});
    }
    return e;
}

} // namespace

std::vector<experiment> rss_suite(effort how)
{
    std::vector<load> loads = single_thread();
    append(loads, several_threads());
    for (std::size_t const threads : {4, 8})
        add_mixes(loads, threads);
    std::vector<experiment> all{nothing_at_all()};
    for (load const& l : loads)
        all.push_back(weighed(l, how));
    return all;
}

} // namespace mallard::bench
