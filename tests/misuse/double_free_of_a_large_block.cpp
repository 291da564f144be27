// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/multipool.hpp>

int main()
{
    using namespace mallard;
    multipool<default_heap, multipool_options{.checks = check::on}> memory;
    void* const block = memory.allocate(100000);
    memory.deallocate(block, 100000);
    memory.deallocate(block, 100000);
}
