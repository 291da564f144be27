// dies: mallard: free of ADDRESS, which is inside a block
// checked dies: mallard: free of ADDRESS, which is inside a block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate_with_room(48);
    // C++ programs free such an address by mistake: by a delete through a second base class without
    // a virtual destructor, or by a delete of an array whose count is stored before the first
    // element.
    set_free(at(block, 8));
    return say("nothing");
}
