// error: it cannot be lock_free
#include <mallard/multipool.hpp>
#include <mallard/sync.hpp>

using namespace mallard;
multipool<default_heap, multipool_options{.threads = sync::lock_free}> blocks;
