// error: make
#include <mallard/object_pool.hpp>

mallard::object_pool<int> numbers;
auto one = numbers.make("one");
