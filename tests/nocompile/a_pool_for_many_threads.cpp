// error: are not in this version of mallard
#include <mallard/pool.hpp>

using namespace mallard;
pool<default_heap, pool_options{.block = 8, .threads = sync::thread_cached}> shared;
