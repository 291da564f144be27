// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/multipool.hpp>

int main()
{
    using namespace mallard;
    multipool<default_heap, multipool_options{.checks = check::on}> memory, another;
    static_cast<void>(memory.allocate(100));
    memory.deallocate(another.allocate(100), 100);
}
