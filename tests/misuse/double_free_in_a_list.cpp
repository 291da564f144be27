// dies: mallard: double free of ADDRESS in a pool
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48, .order = reuse::lifo, .checks = check::on}> blocks;
    void* const block = blocks.allocate();
    blocks.deallocate(block);
    blocks.deallocate(block);
}
