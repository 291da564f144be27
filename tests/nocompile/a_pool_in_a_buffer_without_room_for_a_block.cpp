// error: too small for a single element
#include <mallard/pool.hpp>
#include <mallard/source.hpp>

mallard::pool<mallard::buffer<131055>, mallard::pool_options{.block = 48}> blocks;
