// error: constraint
#include <mallard/arena.hpp>

#include <vector>

mallard::arena<std::vector<int>> scratch;
