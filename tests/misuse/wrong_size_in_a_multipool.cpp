// dies: mallard: free of ADDRESS with a size that it was not allocated with
#include <mallard/multipool.hpp>

int main()
{
    using namespace mallard;
    multipool<default_heap, multipool_options{.checks = check::on}> memory;
    memory.deallocate(memory.allocate(100), 200); // frees into the pool of another size
}
