// error: deleted|implicitly
#include <mallard/adapt/counted.hpp>

void copy(const mallard::counted<mallard::default_heap>& from)
{
    mallard::counted<mallard::default_heap> to(from);
}
