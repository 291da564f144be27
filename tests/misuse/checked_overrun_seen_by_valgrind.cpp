// valgrind: Invalid write of size 1
#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>

int main()
{
    mallard::checked<mallard::multipool<>> blocks("orders");
    auto* const block = static_cast<char*>(blocks.allocate({40}));
    const_cast<volatile char*>(block)[40] = 1;
    blocks.deallocate(block, {40});
}
