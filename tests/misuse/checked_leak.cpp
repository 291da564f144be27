// dies: mallard: leak of 42 bytes in "orders"
#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>

int main()
{
    mallard::checked<mallard::multipool<>> blocks("orders");
    static void* kept[2];
    for (void*& block : kept)
        block = blocks.allocate({21});
}
