// error: constraint
#include <mallard/adapt/fallback.hpp>

mallard::fallback<mallard::default_heap, mallard::default_heap> memory;
