// Measures the cases in the table of 2025-10-26 of hakmem, one of the projects from which Mallard
// grew: one thread with blocks of one size or of several sizes, and four threads with small blocks.
//
// Faithful (as published): each round is a new process, so the first use of memory is part of the
// mean. The number of repetitions is the same as in the table. The report does not specify what was
// written to the blocks, so there is a case in which nothing is written and a case in which each
// page is written. In the case "tiny", a malloc and a free are one operation each, and the start of
// the threads is timed. In all other cases, a malloc and its free are one operation.
//
// Corrected: the same processes and threads serve all rounds, and the measured time is more than a
// second in total. The results have the spread of the rounds. The cost for a thread and the cost
// for all threads are separate figures. Every result has page faults, the peak, and the memory that
// is held when all blocks are free.
#include <bench/seeds/loads.hpp>

namespace mallard::bench {
namespace {

// How much of each block is written.
enum touched : std::size_t { a_byte, pages, all_bytes, nothing };

/// A row of the table for one thread.
struct row_of_table {
    const char* name;
    const char* what;
    task how;
    bool in_brief = true;
};

constexpr std::size_t kib = 1024;

// The rows of the table. The two batch tests have 1,000 and 100 batches of 100, and test_mf2 runs
// once.
constexpr row_of_table rows[] = {
    {"json/64KiB",
     "100 blocks of 64 KiB, none written",
     {.job = "burst", .bytes = 64 * kib, .count = 100, .variant = nothing, .times = 1000}},
    {"json/64KiB/pages",
     "100 blocks of 64 KiB, a byte of each page written",
     {.job = "burst", .bytes = 64 * kib, .count = 100, .variant = pages, .times = 1000},
     false},
    {"mir/256KiB",
     "100 blocks of 256 KiB, none written",
     {.job = "burst", .bytes = 256 * kib, .count = 100, .variant = nothing, .times = 100},
     false},
    {"mir/256KiB/pages",
     "100 blocks of 256 KiB, a byte of each page written",
     {.job = "burst", .bytes = 256 * kib, .count = 100, .variant = pages, .times = 100},
     false},
    {"mf2/2-32KiB",
     "1,000 blocks of 2 KiB, then of 4, 8, 16 and 32, a byte of each written",
     {.job = "burst/in-turn",
      .bytes = 2 * kib,
      .most = 32 * kib,
      .count = 1000,
      .variant = a_byte,
      .times = 1},
     false},
    {"string-builder/8-64B",
     "100 strings each of 8, 16, 24, ... 64 bytes, written in full",
     {.job = "burst", .bytes = 8, .most = 64, .count = 100, .variant = all_bytes, .times = 1000}},
};

std::vector<figure> costs(std::string const& name, const char* variant)
{
    return {{name, "ns_per_op", variant}, {name, "page_faults", variant}};
}

experiment as_published(row_of_table const& r, effort how)
{
    std::string const name = std::string("hakmem/") + r.name;
    return published(
        {.asks = std::string("hakmem: ") + r.what + ", allocated, then freed in order; " +
                 std::to_string(r.how.times) +
                 " times in a new process (a tenth with --short). ns a pair, page faults of 1,000",
         .figures = costs(name, "faithful"),
         .what = r.how,
         .in_brief = r.in_brief},
        how, r.how.variant == pages ? 5 : report_repeats);
}

experiment without_traps(row_of_table const& r, effort how)
{
    std::string const name = std::string("hakmem/") + r.name;
    task again = r.how;
    again.times = 0;
    return corrected({.asks = std::string("hakmem, corrected: ") + r.what +
                              ", allocated, then freed in order, again and again. ns a pair, page "
                              "faults of 1,000",
                      .figures = costs(name, "corrected"),
                      .what = again,
                      .in_brief = r.in_brief},
                     how, report_repeats);
}

constexpr task tiny{
    .job = "threads/hundreds", .bytes = 16, .threads = 4, .variant = 2, .times = 100'000};

// Does only a tenth of the report's repetitions, because all of them would take minutes. Starts
// three processes instead of one, so that the results have a spread.
experiment tiny_as_published(effort how)
{
    task lives = tiny;
    lives.job = "threads/hundreds/lives";
    return published(
        {.asks = "hakmem, bench_tiny_mt: 4 threads are born, each 100,000 times "
                 "allocates 100 blocks of 16 bytes and frees them, a tenth of the "
                 "report's times. ns of a malloc or a free, a thread's and the aggregate" +
                 oversubscribed(tiny.threads),
         .figures = costs_of_threads("hakmem/tiny/16B/T=4", "faithful", tiny.threads),
         .what = lives,
         .in_brief = false},
        how, 3);
}

experiment tiny_without_traps(effort how)
{
    task stays = tiny;
    stays.times = 0;
    return corrected({.asks = "hakmem, bench_tiny_mt, corrected: 4 threads that stay each "
                              "allocate 100 blocks of 16 bytes and free them, again and again. ns "
                              "of a malloc or a free, a thread's and the aggregate" +
                              oversubscribed(tiny.threads),
                      .figures = costs_of_threads("hakmem/tiny/16B/T=4", "corrected", tiny.threads),
                      .what = stays},
                     how, rounds_of_a_second);
}

} // namespace

std::vector<experiment> seeds_hakmem(effort how)
{
    std::vector<experiment> all{tiny_as_published(how), tiny_without_traps(how)};
    for (row_of_table const& r : rows) {
        all.push_back(as_published(r, how));
        all.push_back(without_traps(r, how));
    }
    return all;
}

} // namespace mallard::bench
