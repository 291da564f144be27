// dies: mallard: free of ADDRESS, which is inside a block
// checked dies: mallard: free of ADDRESS, which is inside a block of "operator new"
#include "act.hpp"

#include <new>

int main()
{
    std::align_val_t const align{64};
    ::operator delete(at(hidden(::operator new(256, align)), 16), align);
    return look_for_twins(256);
}
