// dies: mallard: free of ADDRESS, which is inside a block
// checked dies: mallard: free of ADDRESS, which is inside a block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(8192);
    set_free(at(block, 4096));
    return look_for_twins(8192);
}
