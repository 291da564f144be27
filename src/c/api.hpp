// Includes the C header with default visibility, so that the library exports the functions of that
// header, and no other functions of src/c.
#pragma once

#pragma GCC visibility push(default)
#include <mallard/c/mallard.h>
#pragma GCC visibility pop
