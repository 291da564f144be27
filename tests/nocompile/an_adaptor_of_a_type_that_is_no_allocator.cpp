// error: constraint
#include <mallard/adapt/counted.hpp>

mallard::counted<int> memory;
