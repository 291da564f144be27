// error: a lock_free pool does not grow
#include <mallard/object_pool.hpp>
#include <mallard/sync.hpp>

using namespace mallard;
object_pool<int, default_heap, object_pool_options{.threads = sync::lock_free}> numbers;
