#include <bench/lab/growth.hpp>

namespace mallard::bench::lab {

void grow_behind_abstract_base(grow_as const& asked)
{
    cast_abstract_base(asked);
}

} // namespace mallard::bench::lab
