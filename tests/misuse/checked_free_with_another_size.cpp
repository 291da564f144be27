// dies: mallard: free of ADDRESS with a wrong layout in "orders"
#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>

int main()
{
    mallard::checked<mallard::multipool<>> blocks("orders");
    auto* const block = static_cast<char*>(blocks.allocate({40}));
    blocks.deallocate(block, {32});
}
