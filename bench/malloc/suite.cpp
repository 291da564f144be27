// The malloc suite measures what malloc costs, for each library that provides it.
#include <bench/entrants.hpp>
#include <bench/malloc/parts.hpp>
#include <bench/suites.hpp>

namespace mallard::bench {

std::vector<experiment> malloc_suite(effort how)
{
    std::vector<load> loads = malloc_pairs();
    append(loads, malloc_bulk());
    append(loads, malloc_mixes());
    append(loads, malloc_hakmem());
    append(loads, malloc_threads());
    std::vector<experiment> all;
    for (load const& l : loads)
        all.push_back(timed(l, how));
    append(all, malloc_instructions(how));
    return all;
}

} // namespace mallard::bench
