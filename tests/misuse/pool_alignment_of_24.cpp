// dies: mallard: alignment 24 is not a power of two
#include <mallard/pool.hpp>

int main()
{
    mallard::pool<> const blocks(48, 24);
}
