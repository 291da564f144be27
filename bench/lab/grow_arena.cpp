#include <bench/lab/growth.hpp>

namespace mallard::bench::lab {

void grow_in_arena(grow_as const& asked)
{
    cast_arena(asked);
}

} // namespace mallard::bench::lab
