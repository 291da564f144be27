// Fuzzes a pool. The first bytes choose its kind, block size and alignment; the other bytes are the
// program.
#include "../support/program.hpp"

namespace {

using namespace mallard::testing;
using namespace mallard;

template <pool_options O>
void run(recorded& choose)
{
    failing_source source;
    std::size_t const bytes = choose(3000);
    std::size_t const align = choose(2) == 0 ? 0 : std::size_t{1} << choose(13);
    subject_of<pool<ref<failing_source>, O>> of(
        [&] { return pool<ref<failing_source>, O>(bytes, align, source); });
    program<recorded>(source, choose, of, O.grow.limit).run(5000);
}

template <reuse Order, check Checks>
void run_grown(recorded& choose)
{
    constexpr growth small{.first = 3000, .max = 20000, .limit = 200000};
    switch (choose(3)) {
    case 0:
        return run<pool_options{.chunk = 1024, .grow = small, .order = Order, .checks = Checks}>(
            choose);
    case 1:
        return run<pool_options{
            .chunk = 4096, .order = Order, .cached_bytes = 1000, .checks = Checks}>(choose);
    default:
        return run<pool_options{.grow = growth::none(9000), .order = Order, .checks = Checks}>(
            choose);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    recorded choose({data, bytes});
    switch (choose(4)) {
    case 0:
        run_grown<reuse::lifo, check::off>(choose);
        break;
    case 1:
        run_grown<reuse::lifo, check::on>(choose);
        break;
    case 2:
        run_grown<reuse::ordered, check::off>(choose);
        break;
    default:
        run_grown<reuse::ordered, check::on>(choose);
        break;
    }
    return 0;
}
