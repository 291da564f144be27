// Lists the experiments of the multipool suite, in the order in which they are printed.
#include <bench/multipool/contenders.hpp>
#include <bench/suites.hpp>

namespace mallard::bench {

std::vector<experiment> multipool_suite(effort how)
{
    std::vector<experiment> all;
    append(all, multipool_pairs(how));
    append(all, multipool_mixed(how));
    append(all, multipool_containers(how));
    return all;
}

} // namespace mallard::bench
