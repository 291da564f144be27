// dies: mallard: double free of ADDRESS in a pool
#include <mallard/multipool.hpp>

int main()
{
    using namespace mallard;
    multipool<default_heap, multipool_options{.checks = check::on}> memory;
    void* const block = memory.allocate(100);
    memory.deallocate(block, 100);
    memory.deallocate(block, 100);
}
