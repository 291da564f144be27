// dies: mallard: double free of ADDRESS in "orders"
#include <mallard/debug/guarded.hpp>
#include <mallard/multipool.hpp>

int main()
{
    mallard::guarded<mallard::multipool<>> blocks("orders");
    void* const block = blocks.allocate({48});
    blocks.deallocate(block, {48});
    blocks.deallocate(block, {48});
}
