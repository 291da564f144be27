#include <bench/lab/growth.hpp>

namespace mallard::bench::lab {

void grow_in_foonathan(grow_as const& asked)
{
    cast_foonathan(asked);
}

} // namespace mallard::bench::lab
