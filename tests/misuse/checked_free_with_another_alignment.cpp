// dies: mallard: free of ADDRESS with a wrong layout in "orders"
#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>

int main()
{
    mallard::checked<mallard::multipool<>> blocks("orders");
    void* const block = blocks.allocate({40, 32});
    blocks.deallocate(block, {40, 8});
}
