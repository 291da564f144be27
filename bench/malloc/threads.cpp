// Measures blocks that several threads allocate and free.
#include <bench/malloc/parts.hpp>

namespace mallard::bench {
namespace {

constexpr std::size_t counts[] = {1, 2, 4, 8};
const char* const cost = "; ns: wall time / those of all threads, and CPU time";

enum : std::size_t { never, always, every_second }; // how often a batch moves to another thread

/// Adds `what` once for each number of threads, beginning with `least`. A short run has only 4
/// threads.
void add(std::vector<load>& all, const char* name, const char* asks, task what,
         std::size_t least = 1)
{
    for (std::size_t const threads : counts) {
        if (threads < least)
            continue;
        what.threads = threads;
        int const number = static_cast<int>(threads);
        std::string const case_name = std::string(name) + "/T" + std::to_string(threads);
        all.push_back({.asks = "Threads: " + std::to_string(threads) + ". " + asks + cost,
                       .figures = {{case_name, "ns_per_op", "", number},
                                   {case_name, "cpu_ns_per_op", "", number}},
                       .what = what,
                       .in_brief = threads == 4});
    }
}

void add_own(std::vector<load>& all)
{
    add(all, "threads/pair/64B", "Each allocates and frees a block of 64 bytes. Of a pair",
        {.job = "threads/pair", .bytes = 64});
    add(all, "threads/replace/16-1024B",
        "Each has 2,000 blocks of 16-1,024 bytes and replaces random ones. Of a pair",
        {.job = "threads/replace", .bytes = 16, .most = 1024, .count = 2000});
    add(all, "threads/sh6/8-400B",
        "Each allocates 1,000 blocks of 8-400 bytes, mostly small, and frees half in that order, "
        "half in reverse. Of a pair",
        {.job = "threads/batches", .bytes = 8, .most = 400, .count = 1000, .variant = never});
}

void add_crossing(std::vector<load>& all)
{
    add(all, "threads/larson/8-1000B",
        "Each has 5,000 blocks of 8-1,000 bytes and replaces random ones; after 20,000 it leaves "
        "them to a successor and dies. Of a pair",
        {.job = "threads/larson", .bytes = 8, .most = 1000, .count = 5000});
    add(all, "threads/xmalloc/64B",
        "Half of them allocate blocks of 64 bytes, half free them. Of a block",
        {.job = "threads/hand-over", .bytes = 64, .most = 64}, 2);
    add(all, "threads/xmalloc/16-1024B",
        "Half of them allocate blocks of 16-1,024 bytes, half free them. Of a block",
        {.job = "threads/hand-over", .bytes = 16, .most = 1024}, 2);
    add(all, "threads/sh8/8-400B",
        "Each allocates 1,000 blocks of 8-400 bytes, exchanges them for another's, and frees "
        "those. Of a pair",
        {.job = "threads/batches", .bytes = 8, .most = 400, .count = 1000, .variant = always}, 2);
    add(all, "threads/rptest/8-16000B",
        "Each allocates 300 blocks of 8-16,000 bytes, mostly small, writes a byte of each page, "
        "and frees them, or every second time another's. Of a pair",
        {.job = "threads/batches",
         .bytes = 8,
         .most = 16'000,
         .count = 300,
         .variant = every_second});
    add(all, "threads/mstress/8B-5MB",
        "Born for each round, each with 200 blocks that survive it: mostly of 8-512 bytes, some "
        "of 50 KB, few of 5 MB, written in full; a quarter pass to others. Of a step",
        {.job = "threads/generations", .count = 200});
    add(all, "threads/churn/16-256B",
        "That many live at a time; each allocates 1,000 blocks of 16-256 bytes, frees nine of "
        "ten, leaves the others to later threads, and dies. Of a pair",
        {.job = "threads/churn"});
}

void add_lines(std::vector<load>& all)
{
    add(all, "threads/cache-thrash/8B",
        "Each writes 100 times to a block of 8 bytes of its own, then to a new one. Of a block",
        {.job = "threads/scratch", .bytes = 8, .variant = 0});
    add(all, "threads/cache-scratch/8B",
        "As in cache-thrash, but one thread allocated the first block of each. Of a block",
        {.job = "threads/scratch", .bytes = 8, .variant = 1});
}

load relay(std::size_t bytes)
{
    std::string const name = "threads/relay/10kx" + size_name(bytes);
    return {.asks = "One thread allocates 10,000 blocks of " + size_name(bytes) +
                    ", then another frees them. Of a block" + cost,
            .figures = {{name, "ns_per_op", "", 2}, {name, "cpu_ns_per_op", "", 2}},
            .what = {.job = "threads/relay", .bytes = bytes, .count = 10'000}};
}

} // namespace

std::vector<load> malloc_threads()
{
    std::vector<load> all;
    add_own(all);
    add_crossing(all);
    all.push_back(relay(64));
    all.push_back(relay(1024));
    add_lines(all);
    return all;
}

} // namespace mallard::bench
