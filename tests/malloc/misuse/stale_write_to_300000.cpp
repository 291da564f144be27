// lives: nothing
// checked dies: mallard: write to ADDRESS, which is in a freed block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(bytes_large);
    set_free(block);
    scribble(block, 0, 8);
    return look_for_target(bytes_large);
}
