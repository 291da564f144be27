// error: min_align
#include <mallard/arena.hpp>

using namespace mallard;
arena<default_heap, arena_options{.min_align = 32}> scratch;
