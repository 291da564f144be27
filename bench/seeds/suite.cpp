// The seeds suite repeats the published benchmark tables of the projects from which Mallard grew.
// Each table is measured twice: as it was published, including its mistakes (faithful), and without
// the mistakes (corrected).
#include <bench/seeds/contenders.hpp>
#include <bench/suites.hpp>

#include <thread>

namespace mallard::bench {

std::string oversubscribed(std::size_t threads)
{
    std::size_t const processors = std::thread::hardware_concurrency();
    if (threads <= processors)
        return "";
    return ". Oversubscribed: " + std::to_string(threads) + " threads on " +
           std::to_string(processors) + " processors";
}

std::vector<experiment> seeds_suite(effort how)
{
    std::vector<experiment> all;
    append(all, seeds_pbr(how));
    append(all, seeds_pbr_threads(how));
    append(all, seeds_pbr_growth(how));
    append(all, seeds_fastalloc(how));
    append(all, seeds_hakmem(how));
    append(all, seeds_hakozuna(how));
    return all;
}

} // namespace mallard::bench
