// Fuzzes an arena. The first bytes choose its kind; the other bytes are the program.
#include "../support/arena_program.hpp"

namespace {

using namespace mallard::testing;
using namespace mallard;

template <arena_options O>
void run(recorded& choose)
{
    arena_program<recorded, O>(choose).run(5000);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    recorded choose({data, bytes});
    switch (choose(4)) {
    case 0:
        run<arena_options{}>(choose);
        break;
    case 1:
        run<arena_options{.grow = growth::fixed(300), .min_align = 8}>(choose);
        break;
    case 2:
        run<arena_options{.grow = {.first = 100, .limit = 20'000}, .checks = check::on}>(choose);
        break;
    default:
        run<arena_options{.grow = growth::none(3000), .min_align = 16}>(choose);
        break;
    }
    return 0;
}
