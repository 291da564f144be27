// Lists the experiments of the pool suite, in the order in which they are printed.
#include <bench/pool/contenders.hpp>
#include <bench/suites.hpp>

namespace mallard::bench {

std::vector<experiment> pool_suite(effort how)
{
    std::vector<experiment> all;
    append(all, pool_pairs(how));
    append(all, pool_report000(how));
    append(all, pool_reuse(how));
    append(all, pool_growth(how));
    append(all, pool_sizes_small(how));
    append(all, pool_sizes_large(how));
    return all;
}

} // namespace mallard::bench
