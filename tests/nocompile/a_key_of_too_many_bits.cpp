// error: a key has 64 bits at most
#include <mallard/key.hpp>

mallard::key<40, 32> too_long;
