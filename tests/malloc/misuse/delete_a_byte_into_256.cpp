// dies: mallard: free of ADDRESS, which is inside a block
// checked dies: mallard: free of ADDRESS, which is inside a block of "operator new"
#include "act.hpp"

int main()
{
    ::operator delete(at(hidden(::operator new(256)), 1));
    return look_for_twins(256);
}
