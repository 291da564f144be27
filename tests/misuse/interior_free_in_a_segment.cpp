// dies: mallard: free of ADDRESS, which is inside a block of a pool
#include <mallard/persist/segment_pool.hpp>

int main()
{
    auto segment = mallard::shared_memory::anonymous(1 << 16);
    mallard::segment_pool<48> blocks(segment, 10);
    void* const block = blocks.allocate();
    blocks.deallocate(static_cast<char*>(block) + 8);
}
