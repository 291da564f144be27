// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap,
         pool_options{.block = 48, .threads = mallard::sync::thread_cached, .checks = check::on}>
        blocks;
    static_cast<void>(blocks.allocate());
    char elsewhere[48];
    blocks.deallocate(elsewhere);
}
