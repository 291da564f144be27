#include <bench/lab/growth.hpp>

namespace mallard::bench::lab {

void grow_on_heap(grow_as const& asked)
{
    cast_heap(asked);
}

} // namespace mallard::bench::lab
