// error: deleted
#include <mallard/object_pool.hpp>

mallard::object_pool<int> numbers;
auto one = numbers.make(1);
auto two = one;
