// dies: mallard: free of ADDRESS, which is inside a block of a pool
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <thread>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48,
                                    .grow = growth::none(1 << 16),
                                    .threads = mallard::sync::lock_free,
                                    .checks = check::on}>
        blocks;
    void* const block = blocks.allocate();
    std::jthread([&] { blocks.deallocate(static_cast<char*>(block) + 16); }).join();
}
