// dies: mallard: free of ADDRESS, which is inside a block
// checked dies: mallard: free of ADDRESS, which is inside a block of "malloc"
#include "act.hpp"

int main()
{
    allocate_with_room(128);
    void* const block = hidden(std::aligned_alloc(128, 128));
    set_free(at(block, 64));
    return say("nothing");
}
