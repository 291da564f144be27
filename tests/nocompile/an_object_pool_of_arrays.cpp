// error: no array, not const
#include <mallard/object_pool.hpp>

mallard::object_pool<int[4]> numbers;
