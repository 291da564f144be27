// Measures allocating many blocks and then freeing all of them.
#include <bench/malloc/parts.hpp>
#include <bench/patterns.hpp>

#include <algorithm>

namespace mallard::bench {
namespace {

constexpr std::size_t million = 1'000'000;

// Reports allocations and frees separately, because an allocator may make one cheap at the cost of
// the other.
std::vector<figure> both(std::string const& name)
{
    return {{name + "/malloc"}, {name + "/free"}};
}

load live(std::size_t count, std::size_t bytes, order frees, std::string const& name,
          std::string const& how)
{
    return {.asks = std::to_string(count) + " blocks of " + size_name(bytes) +
                    " allocated, a byte of each written, then freed " + how + ". ns a block",
            .figures = both(name),
            .what = {.job = "bulk",
                     .bytes = bytes,
                     .count = count,
                     .variant = static_cast<std::size_t>(frees)}};
}

load million_of_64(const char* name, order frees, const char* how)
{
    load l = live(million, 64, frees, std::string("bulk/1Mx64B/") + name, how);
    l.weight = 2;
    return l;
}

} // namespace

std::vector<load> malloc_bulk()
{
    std::vector<load> all;
    for (std::size_t const bytes : {16, 64, 256})
        all.push_back(
            live(10'000, bytes, order::forward, "bulk/10kx" + size_name(bytes), "in order"));
    all.push_back(
        million_of_64("first", order::forward, "in order, in a process that has just begun"));
    all.back().fresh = true;
    all.push_back(million_of_64("again", order::forward, "in order, once more"));
    all.push_back(million_of_64("random", order::shuffled,
                                "at random, then allocated again: in which order do they come?"));
    for (std::size_t bytes = 16; bytes <= 1024 * 1024; bytes *= 4) {
        std::size_t const count = std::min<std::size_t>(million, (64 << 20) / bytes);
        all.push_back(
            live(count, bytes, order::forward, "bulk/64MiB/" + size_name(bytes), "in order"));
        all.back().in_brief = false;
    }
    return all;
}

} // namespace mallard::bench
