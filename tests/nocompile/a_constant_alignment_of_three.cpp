// error: fatal_alignment
#include <mallard/detail/base/bits.hpp>

constexpr mallard::layout bad(8, 3);
