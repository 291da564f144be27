// error: an observer must be noexcept
#include <mallard/adapt/observed.hpp>

struct loud {
    void failed(mallard::layout) { throw 1; }
};

mallard::chunk take(mallard::observed<mallard::default_heap, loud>& heap)
{
    return heap.try_take({64, 16});
}
