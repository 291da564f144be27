// dies: mallard: alignment 3 is not a power of two
#include <mallard/detail/base/bits.hpp>

#include <cstdlib>

int main()
{
    // A value the compiler cannot know, or it would refuse to compile this.
    std::size_t const align = std::strtoul("3", nullptr, 10);
    return static_cast<int>(mallard::layout(8, align).align);
}
