// A container with an allocator as a template argument.
#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>

#include <cassert>
#include <vector>

int main()
{
    using scratch_vector = std::vector<int, mallard::allocator<int, mallard::arena<>>>;

    mallard::arena<> scratch;
    scratch_vector squares(scratch); // an allocator is constructed from an arena&
    for (int i = 0; i < 10; ++i)
        squares.push_back(i * i);
    scratch_vector const copy = squares; // uses the same arena

    assert(copy.get_allocator() == squares.get_allocator() && copy[9] == 81);
}
