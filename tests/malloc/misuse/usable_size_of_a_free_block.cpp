// dies: mallard: malloc_usable_size of ADDRESS, which is free
// checked dies: mallard: malloc_usable_size of ADDRESS, which is not a block of malloc
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    set_free(block);
    hidden(::malloc_usable_size(hidden(block)));
    return say("nothing");
}
