// Includes the C header with default visibility: its functions are exported, and nothing else of
// src/c is.
#pragma once

#pragma GCC visibility push(default)
#include <mallard/c/mallard.h>
#pragma GCC visibility pop
