// error: deleted|no matching
#include <mallard/object_pool.hpp>
#include <mallard/sync.hpp>

mallard::arc_pool<int> numbers;
mallard::arc_pool<int> others(static_cast<mallard::arc_pool<int>&&>(numbers));
