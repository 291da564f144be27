// dies: mallard: double free of ADDRESS in a pool
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <thread>

int main()
{
    using namespace mallard;
    pool<default_heap,
         pool_options{.block = 48, .threads = mallard::sync::thread_cached, .checks = check::on}>
        blocks;
    void* const block = blocks.allocate();
    std::jthread([&] { blocks.deallocate(block); }).join();
    blocks.deallocate(block);
}
