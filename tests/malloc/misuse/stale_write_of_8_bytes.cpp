// dies: mallard: the list of free blocks is corrupt at ADDRESS
// checked dies: mallard: write to ADDRESS, which is in a freed block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    set_free(block);
    scribble(block, 0, 1);
    return look_for_target(64);
}
