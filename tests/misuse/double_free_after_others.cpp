// dies: mallard: double free of ADDRESS in a pool
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48, .order = reuse::ordered, .checks = check::on}>
        blocks;
    void* all[200];
    blocks.allocate_batch(all);
    blocks.deallocate_batch(all);
    // The pool's array of recently freed blocks has room for fewer than 200 blocks. So the pool has
    // moved `all[0]` from the array to the bitmap of its chunk.
    blocks.deallocate(all[0]);
}
