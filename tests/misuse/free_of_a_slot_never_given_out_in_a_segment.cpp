// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/persist/segment_pool.hpp>

int main()
{
    auto segment = mallard::shared_memory::anonymous(1 << 16);
    mallard::segment_pool<48> blocks(segment, 10);
    static_cast<void>(blocks.allocate());
    blocks.deallocate(blocks.at(1));
}
