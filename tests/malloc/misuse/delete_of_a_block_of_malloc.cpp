// lives: nothing
// checked dies: mallard: delete of ADDRESS, which is from malloc
#include "act.hpp"

#include <new>

int main()
{
    ::operator delete(allocate(64));
    return look_for_twins(64);
}
