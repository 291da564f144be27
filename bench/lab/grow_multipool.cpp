#include <bench/lab/growth.hpp>

namespace mallard::bench::lab {

void grow_in_multipool(grow_as const& asked)
{
    cast_multipool(asked);
}

} // namespace mallard::bench::lab
