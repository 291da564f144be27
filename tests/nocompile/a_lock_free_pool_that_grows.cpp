// error: a lock_free pool does not grow
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

using namespace mallard;
pool<default_heap, pool_options{.block = 48, .threads = sync::lock_free}> blocks;
