// error: a key has at most 64 bits
#include <mallard/key.hpp>

mallard::key<40, 32> too_long;
