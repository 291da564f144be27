#include <bench/lab/growth.hpp>

namespace mallard::bench::lab {

void grow_in_multipool_over_arena(grow_as const& asked)
{
    cast_multipool_over_arena(asked);
}

} // namespace mallard::bench::lab
