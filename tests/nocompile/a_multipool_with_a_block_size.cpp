// error: size classes decide block and alignment
#include <mallard/multipool.hpp>

using namespace mallard;
multipool<default_heap, multipool_options{.pools = {.block = 64}}> blocks;
