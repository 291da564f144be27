// Measures a block that grows by realloc and doubles at each step.
#include <bench/measure.hpp>
#include <bench/worker/blocks.hpp>
#include <bench/worker/job.hpp>

#include <bit>

namespace mallard::bench {
namespace {

// Allocates a block and grows it. The bytes that a step adds are written to.
void grow(std::size_t from, std::size_t to)
{
    void* block = by_malloc::take(from);
    touch_pages(block, from);
    for (std::size_t bytes = from; bytes < to; bytes *= 2) {
        block = insist(std::realloc(block, 2 * bytes));
        touch_pages(block, 2 * bytes, bytes);
    }
    by_malloc::give(block, to);
}

round_function growth(task const& t, effort how)
{
    std::size_t const most = how.is_smoke() ? 4 * t.bytes : t.most;
    return [least = t.bytes, most, timed = batch(how)](std::span<double> out) mutable {
        double const ns = timed.ns_of_one([&](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
                grow(least, most);
        });
        out[0] = ns / static_cast<double>(std::bit_width(most / least));
    };
}

constexpr job jobs[] = {{"growth", growth}};

} // namespace

std::span<const job> growth_jobs()
{
    return jobs;
}

} // namespace mallard::bench
