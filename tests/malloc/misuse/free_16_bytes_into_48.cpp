// dies: mallard: free of ADDRESS, which is inside a block
// checked dies: mallard: free of ADDRESS, which is inside a block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(48);
    set_free(at(block, 16)); // aligned like a block, so only the check of a full list detects it
    return look_for_twins(48);
}
