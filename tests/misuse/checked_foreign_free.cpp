// dies: mallard: free of ADDRESS, which is not a block of "orders"
#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>

int main()
{
    mallard::checked<mallard::multipool<>> blocks("orders");
    int not_a_block = 0;
    blocks.deallocate(&not_a_block, {4});
}
