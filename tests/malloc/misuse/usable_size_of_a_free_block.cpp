// dies: mallard: malloc_usable_size of ADDRESS, which is free
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    set_free(block);
    hidden(::malloc_usable_size(hidden(block)));
    return say("nothing");
}
