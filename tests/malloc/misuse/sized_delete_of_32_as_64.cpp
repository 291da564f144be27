// lives: nothing
// checked dies: mallard: free of ADDRESS with a wrong layout in "operator new"
#include "act.hpp"

int main()
{
    ::operator delete(hidden(::operator new(32)), 64);
    return look_for_twins(64);
}
