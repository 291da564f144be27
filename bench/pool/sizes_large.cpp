#include <bench/pool/sizes.hpp>

namespace mallard::bench {

std::vector<experiment> pool_sizes_large(effort how)
{
    return {of_size<256>(how), of_size<512>(how), of_size<1024>(how), of_size<2048>(how),
            of_size<4096>(how)};
}

} // namespace mallard::bench
