#include <bench/pool/sizes.hpp>

namespace mallard::bench {

std::vector<experiment> pool_sizes_small(effort how)
{
    return {of_size<8>(how), of_size<16>(how), of_size<32>(how), of_size<64>(how),
            of_size<128>(how)};
}

} // namespace mallard::bench
