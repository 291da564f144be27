// error: fatal_alignment
#include <mallard/pool.hpp>

mallard::pool<mallard::default_heap, mallard::pool_options{.block = 48, .align = 24}> blocks;
