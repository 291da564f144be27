// error: constraint
#include <mallard/arena.hpp>
#include <mallard/by_size.hpp>

mallard::by_size<64, mallard::arena<>, mallard::default_heap> memory;
