// error: constraint
#include <mallard/fallback.hpp>

mallard::fallback<mallard::default_heap, mallard::default_heap> memory;
