// The C header as its definitions see it: what it declares is exported, and
// nothing else in this folder is.
#pragma once

#pragma GCC visibility push(default)
#include <mallard/c/mallard.h>
#pragma GCC visibility pop
