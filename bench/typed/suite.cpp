// Lists the experiments of the typed suite, in the order in which they are printed.
#include <bench/suites.hpp>
#include <bench/typed/contenders.hpp>

namespace mallard::bench {

std::vector<experiment> typed_suite(effort how)
{
    std::vector<experiment> all;
    append(all, typed_objects(how));
    append(all, typed_handles(how));
    append(all, typed_threads(how));
    append(all, typed_slot_map(how));
    append(all, typed_shared_slot_map(how));
    append(all, typed_adaptors(how));
    append(all, typed_file(how));
    return all;
}

} // namespace mallard::bench
