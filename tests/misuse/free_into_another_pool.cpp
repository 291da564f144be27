// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48, .order = reuse::lifo, .checks = check::on}> blocks;
    decltype(blocks) others;
    blocks.deallocate(others.allocate());
}
