// error: arena|buffer
#include <mallard/arena.hpp>

void move(mallard::arena<mallard::buffer<64>>& from)
{
    mallard::arena<mallard::buffer<64>> to(std::move(from));
}
