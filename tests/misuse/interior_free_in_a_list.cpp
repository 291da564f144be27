// dies: mallard: free of ADDRESS, which is inside a block of a pool
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48, .order = reuse::lifo, .checks = check::on}> blocks;
    blocks.deallocate(static_cast<char*>(blocks.allocate()) + 1);
}
