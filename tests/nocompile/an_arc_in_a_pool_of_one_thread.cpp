// error: needs a threading mode
#include <mallard/object_pool.hpp>

using namespace mallard;
object_pool<int, default_heap, object_pool_options{.counts = counts::shared}> numbers;
