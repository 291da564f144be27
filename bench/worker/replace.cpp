// Measures the replacement of a random block by a block of another size.
#include <bench/measure.hpp>
#include <bench/worker/blocks.hpp>
#include <bench/worker/job.hpp>
#include <bench/worker/slots.hpp>

#include <memory>

namespace mallard::bench {
namespace {

round_function replace(task const& t, effort how)
{
    auto const live = std::make_shared<slots>(how.count(t.count), t.bytes, t.most, 1);
    return [live, timed = batch(how)](std::span<double> out) mutable {
        out[0] = timed.ns_of_one([&](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
                live->replace();
        });
    };
}

// Does the same as `replace`, but writes to all pages of each block.
round_function large(task const& t, effort how)
{
    std::size_t const most = how.is_smoke() ? t.bytes : t.most;
    auto const live = std::make_shared<slots>(how.is_smoke() ? 2 : t.count, t.bytes, most, 1);
    std::size_t const steps = how.is_smoke() ? 2 : how.is_brief() ? 20 : 60;
    return [live, steps](std::span<double> out) {
        double const from = cpu_ns();
        for (std::size_t i = 0; i < steps; ++i)
            live->replace([](void* block, std::size_t bytes) { touch_pages(block, bytes); });
        out[0] = (cpu_ns() - from) / static_cast<double>(steps);
    };
}

constexpr job jobs[] = {{"replace", replace}, {"large", large}};

} // namespace

std::span<const job> replace_jobs()
{
    return jobs;
}

} // namespace mallard::bench
