// error: observer_of
#include <mallard/adapt/observed.hpp>

struct observer {
    void exhausted(mallard::layout) noexcept; // a source is not an allocator
};

mallard::observed<mallard::default_heap, observer> heap;
