// dies: mallard: alignment 0 is not a power of two
#include <mallard/detail/base/bits.hpp>

#include <cstdlib>

int main()
{
    std::size_t const align = std::strtoul("0", nullptr, 10);
    return static_cast<int>(mallard::layout(8, align).align);
}
