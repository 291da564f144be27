// dies: mallard: free of ADDRESS with a size that it was not allocated with
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48, .checks = check::on}> blocks;
    blocks.deallocate(blocks.allocate(40), 9000);
}
