// dies: mallard: alignment 3 is not a power of two
#include <mallard/detail/base/bits.hpp>

#include <cstdlib>

int main()
{
    // The compiler must not know the value, because it would reject the program.
    std::size_t const align = std::strtoul("3", nullptr, 10);
    return static_cast<int>(mallard::layout(8, align).align);
}
