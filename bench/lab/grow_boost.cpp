#include <bench/lab/growth.hpp>

namespace mallard::bench::lab {

void grow_in_boost(grow_as const& asked)
{
    cast_boost(asked);
}

} // namespace mallard::bench::lab
