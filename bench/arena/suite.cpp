// Lists the experiments of the arena suite, in the order in which they are printed.
#include <bench/arena/contenders.hpp>
#include <bench/suites.hpp>

namespace mallard::bench {

std::vector<experiment> arena_suite(effort how)
{
    std::vector<experiment> all;
    append(all, arena_blocks(how));
    append(all, arena_uses(how));
    append(all, arena_life(how));
    return all;
}

} // namespace mallard::bench
