// error: deleted
#include <mallard/object_pool.hpp>

mallard::object_pool<int> numbers;
mallard::object_pool<int> others(numbers);
