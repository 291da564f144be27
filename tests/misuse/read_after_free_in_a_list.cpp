// asan: use-after-poison
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.order = reuse::lifo}> blocks(64);
    auto* const block = static_cast<volatile char*>(blocks.allocate());
    block[0] = 1;
    blocks.deallocate(const_cast<char*>(block));
    return block[0]; // the free list keeps its link in these bytes
}
