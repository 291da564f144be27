// lives: nothing
// checked dies: mallard: free of ADDRESS, which is from operator new
#include "act.hpp"

#include <new>

int main()
{
    std::free(hidden(::operator new(64)));
    return look_for_twins(64);
}
