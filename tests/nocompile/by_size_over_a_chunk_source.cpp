// error: constraint
#include <mallard/adapt/by_size.hpp>
#include <mallard/arena.hpp>

mallard::by_size<64, mallard::arena<>, mallard::default_heap> memory;
