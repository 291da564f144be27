// error: include <mallard/sync\.hpp> to use a pool in several threads
#include <mallard/pool.hpp>

int main()
{
    mallard::pool<mallard::default_heap, mallard::pool_options{.threads = mallard::sync::mutex}>
        blocks(48);
    return blocks.allocate() == nullptr;
}
