// Measures the cases in the tables of hakozuna, one of the projects from which Mallard grew: the
// remote matrix (threads that free each other's blocks), larson, blocks that change owner, and a
// mix of sizes. ns_per_op is the cost for one thread: wall time * threads / operations of all
// threads. An operation is a malloc and its free. The tables' figures in M ops/s are converted to
// ns_per_op.
//
// Faithful matrix (as published): 16 threads are started. Each does 50,000 steps, or 10,000 where
// blocks are sent, because 50,000 would take minutes for each case. A block is sent to another
// thread through a vector with a lock. The receiving thread empties the vector every 32 steps.
// There are ten processes.
//
// Corrected matrix: the same threads serve all rounds. Blocks are sent through ring buffers of the
// benchmark. The measured time is more than a second in total. Some further cases have 64 live
// blocks in each thread. Other cases have 2 threads, because most machines have fewer than 16
// processors.
#include <bench/seeds/loads.hpp>

namespace mallard::bench {
namespace {

struct matrix_row {
    const char* name;
    std::size_t least;
    std::size_t most;
    std::size_t remote_percent;
    bool in_brief = false;
};

constexpr matrix_row matrix[] = {
    {"guard_local0", 16, 2048, 0, true}, {"main_local0", 16, 32768, 0},
    {"main_r50", 16, 32768, 50, true},   {"main_r90", 16, 32768, 90},
    {"small_r90", 16, 4096, 90},         {"medium_r50", 4097, 65536, 50},
    {"medium_local0", 4097, 65536, 0},
};

constexpr std::size_t matrix_threads = 16;

constexpr std::size_t steps_of(matrix_row const& r)
{
    return r.remote_percent == 0 ? 50'000 : 10'000;
}

std::string described(matrix_row const& r)
{
    return "blocks of " + std::to_string(r.least) + " to " + std::to_string(r.most) +
           " bytes, first and last written, " + std::to_string(r.remote_percent) +
           " of 100 sent to another thread, which frees them";
}

const char* const costs_told = ". ns of a pair, a thread's and the aggregate; page faults of 1,000";

experiment as_published(matrix_row const& r, effort how)
{
    return published(
        {.asks = "hakozuna: 16 threads are born in a new process, " + std::to_string(steps_of(r)) +
                 " steps each" + (r.remote_percent == 0 ? "" : ", a fifth of the report's") +
                 " (a tenth with --short): " + described(r) + ", through vectors with locks" +
                 costs_told + oversubscribed(matrix_threads),
         .figures = costs_of_threads(std::string("hakozuna/") + r.name, "faithful", matrix_threads,
                                     r.remote_percent != 0),
         .what = {.job = "matrix/vectors",
                  .bytes = r.least,
                  .most = r.most,
                  .threads = matrix_threads,
                  .variant = r.remote_percent,
                  .times = steps_of(r)},
         .in_brief = r.in_brief},
        how, 10);
}

experiment without_traps(matrix_row const& r, effort how, std::string const& suffix,
                         std::size_t threads, std::size_t live)
{
    bool const is_plain = suffix.empty();
    return corrected(
        {.asks = "hakozuna, corrected: " + std::to_string(threads) +
                 " threads that stay: " + described(r) + ", through rings" +
                 (live == 0 ? "" : "; of the others, " + std::to_string(live) + " live") +
                 costs_told + oversubscribed(threads),
         .figures = costs_of_threads(std::string("hakozuna/") + r.name + suffix, "corrected",
                                     threads, r.remote_percent != 0),
         .what = {.job = "matrix/rings",
                  .bytes = r.least,
                  .most = r.most,
                  .count = live,
                  .threads = threads,
                  .variant = r.remote_percent},
         .in_brief = is_plain && r.in_brief},
        how, rounds_of_a_second);
}

void add_matrix(std::vector<experiment>& all, effort how)
{
    for (matrix_row const& r : matrix) {
        all.push_back(as_published(r, how));
        all.push_back(without_traps(r, how, "", matrix_threads, 0));
        if (r.remote_percent == 0)
            all.push_back(without_traps(r, how, "/live=64", matrix_threads, 64));
    }
    for (std::size_t const fits : {0u, 2u}) // the report's guard_local0 and main_r50
        all.push_back(without_traps(matrix[fits], how, "/T=2", 2, 0));
}

// Makes the larson case. (The report runs it for ten seconds.)
experiment larson(effort how, std::size_t threads, const char* variant, std::size_t ms)
{
    load const l{.asks = std::string("hakozuna, Larson") + (ms == 0 ? ", corrected" : "") + ": " +
                         std::to_string(threads) +
                         " threads, each with 10,000 blocks of 8 to 1,024 bytes, replace random "
                         "ones; after 20,000 each leaves them to a successor and dies" +
                         (ms == 0 ? "" : "; for 1 s, once, instead of 10") + costs_told +
                         oversubscribed(threads),
                 .figures = costs_of_threads("hakozuna/larson/T=" + std::to_string(threads),
                                             variant, threads),
                 .what = {.job = "threads/larson",
                          .bytes = 8,
                          .most = 1024,
                          .count = 10'000,
                          .threads = threads,
                          .times = ms},
                 .in_brief = false};
    experiment e = ms == 0 ? corrected(l, how, rounds_of_a_second) : published(l, how, 1);
    e.once = ms != 0;
    return e;
}

constexpr std::size_t owners = 8; // half of the threads allocate, half free

experiment crossing(effort how, const char* job, const char* variant, const char* through,
                    std::size_t ms)
{
    load const l{.asks = std::string("hakozuna, xowner") + (ms == 0 ? ", corrected" : "") +
                         ": 4 threads allocate blocks of 8 to 1,024 bytes, 4 others free them, " +
                         through + costs_told + oversubscribed(owners),
                 .figures = costs_of_threads("hakozuna/xowner", variant, owners),
                 .what = {.job = job, .bytes = 8, .most = 1024, .threads = owners, .times = ms},
                 .in_brief = false};
    experiment e = ms == 0 ? corrected(l, how, rounds_of_a_second) : published(l, how, 1);
    e.once = ms != 0;
    return e;
}

// The number of steps of the mixed case. The report does not specify the number.
constexpr std::size_t mixed_steps = 1'000'000;

experiment mixed(effort how, std::size_t threads, bool is_faithful)
{
    std::string const name = "hakozuna/mixed_ws/T=" + std::to_string(threads);
    std::string const who = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    load const l{.asks = std::string("hakozuna, mixed_ws") + (is_faithful ? "" : ", corrected") +
                         ": " + who +
                         (is_faithful    ? " born in a new process"
                          : threads == 1 ? " that stays"
                                         : " that stay") +
                         ", each with 8,192 slots of 16 to 1,024 bytes, of which a random one is "
                         "replaced, or every 64th time grown by 16 bytes" +
                         (is_faithful ? "; 1,000,000 times (a tenth with --short)" : "") +
                         costs_told + oversubscribed(threads),
                 .figures = costs_of_threads(name, is_faithful ? "faithful" : "corrected", threads),
                 .what = {.job = "threads/working-set",
                          .bytes = 16,
                          .most = 1024,
                          .count = 8192,
                          .threads = threads,
                          .times = is_faithful ? mixed_steps : 0},
                 .in_brief = !is_faithful && threads == 4};
    return is_faithful ? published(l, how, 5) : corrected(l, how, rounds_of_a_second);
}

} // namespace

std::vector<experiment> seeds_hakozuna(effort how)
{
    std::vector<experiment> all;
    add_matrix(all, how);
    for (std::size_t const threads : {1u, 4u, 8u, 16u}) {
        all.push_back(larson(how, threads, "faithful", 1000));
        all.push_back(larson(how, threads, "corrected", 0));
    }
    all.push_back(crossing(how, "threads/hand-over/singly", "faithful",
                           "through a queue of 4,096; for 1 s, once, instead of 5", 1000));
    all.push_back(
        crossing(how, "threads/hand-over", "corrected", "through a queue of 32 batches of 256", 0));
    for (std::size_t const threads : {1u, 4u}) {
        all.push_back(mixed(how, threads, true));
        all.push_back(mixed(how, threads, false));
    }
    return all;
}

} // namespace mallard::bench
