// dies: mallard: double free of ADDRESS in a pool
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48, .order = reuse::ordered, .checks = check::on}>
        blocks;
    void* all[200];
    blocks.allocate_batch(all);
    // By now the pool has moved the blocks that were freed first from its array of recent frees to
    // the bitmaps of their chunks.
    blocks.deallocate_batch(all);
    blocks.deallocate(all[0]);
}
