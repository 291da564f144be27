// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/multipool.hpp>

int main()
{
    using namespace mallard;
    multipool<default_heap, multipool_options{.checks = check::on}> memory;
    memory.deallocate(memory.allocate(100), 200); // frees into the pool of another size
}
