// dies: mallard: free of ADDRESS, which is inside a block
// checked dies: mallard: free of ADDRESS, which is inside a block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate_with_room(48);
    // Like a delete of a second base class without a virtual destructor, or of an array with a
    // count.
    set_free(at(block, 8));
    return say("nothing");
}
