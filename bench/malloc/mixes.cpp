// Measures blocks of many sizes, and blocks that grow, in one thread.
#include <bench/malloc/parts.hpp>

namespace mallard::bench {
namespace {

load replace(std::size_t count, std::size_t least, std::size_t most)
{
    std::string const range = std::to_string(least) + "-" + std::to_string(most) + "B";
    return {.asks = std::to_string(count) + " blocks of " + range +
                    " live; a random one is freed and one of another size allocated. ns a pair",
            .figures = {{"replace/" + std::to_string(count / 1000) + "kx" + range}},
            .what = {.job = "replace", .bytes = least, .most = most, .count = count}};
}

load growth(std::size_t from, std::size_t to)
{
    return {.asks = "A block of " + size_name(from) + ", doubled by realloc up to " +
                    size_name(to) + "; a byte of each new page is written. ns a step",
            .figures = {{"realloc/" + size_name(from) + "-" + size_name(to)}},
            .what = {.job = "growth", .bytes = from, .most = to}};
}

} // namespace

std::vector<load> malloc_mixes()
{
    return {replace(1000, 16, 1000),
            replace(10'000, 16, 1000),
            replace(5000, 16, 8000),
            growth(16, 64 << 10),
            growth(64 << 10, 64 << 20),
            {.asks = "20 blocks of 5 to 25 MiB live; a random one is freed and another allocated, "
                     "all pages of which are written, as in malloc-large. ns a pair",
             .figures = {{"large/20x5-25MiB"}},
             .what = {.job = "large", .bytes = 5 << 20, .most = 25 << 20, .count = 20},
             .in_brief = false,
             .weight = 2}};
}

} // namespace mallard::bench
