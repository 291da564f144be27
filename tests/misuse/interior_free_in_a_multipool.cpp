// dies: mallard: free of ADDRESS, which is inside a block of a pool
#include <mallard/multipool.hpp>

int main()
{
    using namespace mallard;
    multipool<default_heap, multipool_options{.order = reuse::ordered, .checks = check::on}> memory;
    memory.deallocate(static_cast<char*>(memory.allocate(100)) + 99, 100);
}
