// error: fatal_alignment
#include <mallard/bits.hpp>

constexpr mallard::layout bad(8, 3);
