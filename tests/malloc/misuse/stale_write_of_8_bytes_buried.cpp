// dies: mallard: the list of free blocks is corrupt at ADDRESS
// checked dies: mallard: write to ADDRESS, which is in a freed block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    void* others[30];
    for (void*& other : others)
        other = allocate(64);
    set_free(block);
    for (void* const other : others)
        set_free(other);
    scribble(block, 0, 1);
    return look_for_target(64);
}
