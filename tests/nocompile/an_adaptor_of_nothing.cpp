// error: constraint
#include <mallard/counted.hpp>

mallard::counted<int> memory;
