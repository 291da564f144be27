// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48, .order = reuse::lifo, .checks = check::on}> blocks;
    auto* const first = static_cast<char*>(blocks.allocate());
    blocks.deallocate(first + 48 * 1000); // in the chunk, but not carved yet
}
