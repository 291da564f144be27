// dies: mallard: leak of 21 bytes in "orders"
#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>

int main()
{
    constexpr mallard::checked_options calls{.frames = 4};
    mallard::checked<mallard::multipool<>, calls> blocks("orders");
    static void* kept = blocks.allocate({21});
    return kept == nullptr;
}
