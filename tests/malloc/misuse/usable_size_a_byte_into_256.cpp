// dies: mallard: malloc_usable_size of ADDRESS, which is inside a block
// checked dies: mallard: malloc_usable_size of ADDRESS, which is not a block of malloc
#include "act.hpp"

int main()
{
    void* const block = allocate(256);
    hidden(::malloc_usable_size(at(block, 1)));
    return say("nothing");
}
