// error: allocator
#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>

mallard::allocator<int, mallard::arena<>> from_nowhere;
