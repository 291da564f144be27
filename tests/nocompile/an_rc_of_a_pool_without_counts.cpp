// error: need \.counts
#include <mallard/object_pool.hpp>

mallard::object_pool<int>::rc number;
