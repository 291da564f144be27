// dies: mallard: the list of free blocks is corrupt at ADDRESS
// checked dies: mallard: write to ADDRESS, past the end of a block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    void* const neighbour = allocate(64);
    set_free(neighbour);
    scribble(block, 8, 16);
    return look_for_target(64);
}
