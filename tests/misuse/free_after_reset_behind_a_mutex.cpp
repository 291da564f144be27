// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap,
         pool_options{.block = 48, .threads = mallard::sync::mutex, .checks = check::on}>
        blocks;
    void* some[700];
    blocks.allocate_batch(some);
    blocks.reset();
    blocks.deallocate(some[600]);
}
