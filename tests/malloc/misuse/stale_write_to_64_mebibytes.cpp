// segfaults: so far
// checked segfaults: so far
#include "act.hpp"

int main()
{
    void* const block = allocate(bytes_huge);
    set_free(block);
    say("so far");
    *static_cast<char*>(hidden(block)) = 1;
    return say("nothing");
}
