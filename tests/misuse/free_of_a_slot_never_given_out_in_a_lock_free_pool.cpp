// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48,
                                    .grow = growth::none(1 << 16),
                                    .threads = mallard::sync::lock_free,
                                    .checks = check::on}>
        blocks;
    auto* const block = static_cast<char*>(blocks.allocate());
    blocks.deallocate(block + 48 * 200);
}
