// error: no (matching|viable)|could not convert|no known conversion
#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>

#include <vector>

template <class A>
using ints = std::vector<int, mallard::allocator<int, A>>;

void mix(mallard::arena<mallard::pmr_source>& other)
{
    ints<mallard::arena<>> v(other);
}
