// error: constraint
#include <mallard/counted.hpp>

mallard::counted<mallard::default_heap, mallard::sync::mutex> heap;
