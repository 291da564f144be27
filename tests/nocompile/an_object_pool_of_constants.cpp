// error: must not be an array or const
#include <mallard/object_pool.hpp>

mallard::object_pool<const int> numbers;
