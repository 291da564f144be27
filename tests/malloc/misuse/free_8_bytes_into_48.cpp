// dies: mallard: free of ADDRESS, which is inside a block
// checked dies: mallard: free of ADDRESS, which is inside a block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate_with_room(48);
    set_free(
        at(block, 8)); // as a second base without a virtual destructor, or an array with a count
    return say("nothing");
}
