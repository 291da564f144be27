// Measures one block that is allocated and freed immediately, and a few blocks in turn.
#include <bench/malloc/parts.hpp>

namespace mallard::bench {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t ladder[] = {8,        16,       32,        64,      128,     256,
                                  512,      kib,      2 * kib,   4 * kib, 8 * kib, 16 * kib,
                                  32 * kib, 64 * kib, 256 * kib, kib* kib};

bool is_in_brief(std::size_t bytes)
{
    return bytes == 16 || bytes == 64 || bytes == kib || bytes == 2 * kib || bytes == 32 * kib ||
           bytes == 256 * kib || bytes == kib * kib;
}

load pair(std::string_view job, std::string const& calls, std::size_t bytes)
{
    bool const plain = job == "pair/malloc";
    std::string const name = (plain ? "pair" : std::string(job)) + "/" + size_name(bytes);
    return {.asks = calls + " a block of " + size_name(bytes) +
                    ", whose first byte is written. ns a pair; cycles of this processor",
            .figures = {{name}, {name, "cycles_per_op"}},
            .what = {.job = job, .bytes = bytes},
            .in_brief = !plain || is_in_brief(bytes)};
}

} // namespace

std::vector<load> malloc_pairs()
{
    std::vector<load> all;
    for (std::size_t const bytes : ladder)
        all.push_back(pair("pair/malloc", "malloc and free of", bytes));
    all.push_back(pair("pair/new", "operator new and operator delete(block) of", 64));
    all.push_back(
        pair("pair/sized-delete", "operator new and operator delete(block, bytes) of", 64));
    all.push_back(pair("pair/aligned-new", "operator new and delete, aligned to 64, of", 64));
    all.push_back(pair("pair/calloc", "calloc and free of", 64));
    all.push_back(pair("pair/calloc", "calloc and free of", 64 * kib));
    all.push_back({.asks = "100 blocks of 64 bytes live; the oldest is freed, a new one allocated. "
                           "ns a pair; cycles",
                   .figures = {{"fifo/100x64B"}, {"fifo/100x64B", "cycles_per_op"}},
                   .what = {.job = "fifo", .bytes = 64, .count = 100}});
    all.push_back({.asks = "A list of 1,000 nodes of 24 bytes, made by new, walked and deleted. ns "
                           "a node",
                   .figures = {{"list/1000x24B"}},
                   .what = {.job = "list", .count = 1000}});
    return all;
}

} // namespace mallard::bench
