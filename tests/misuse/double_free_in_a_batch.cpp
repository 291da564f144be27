// dies: mallard: double free of ADDRESS in a pool
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48, .checks = check::on}> blocks;
    void* all[10];
    blocks.allocate_batch(all);
    all[7] = all[3];
    blocks.deallocate_batch(all);
}
