// error: pool
#include <mallard/pool.hpp>

mallard::pool<> blocks;
