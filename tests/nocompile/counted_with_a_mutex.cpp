// error: constraint
#include <mallard/adapt/counted.hpp>

mallard::counted<mallard::default_heap, mallard::sync::mutex> heap;
