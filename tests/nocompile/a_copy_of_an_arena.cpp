// error: deleted
#include <mallard/arena.hpp>

mallard::arena<> first;
mallard::arena<> second(first);
