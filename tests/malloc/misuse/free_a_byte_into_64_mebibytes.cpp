// dies: mallard: free of ADDRESS, which is not a block of malloc
// checked dies: mallard: free of ADDRESS, which is inside a block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(bytes_huge);
    set_free(at(block, 1));
    return look_for_twins(bytes_huge);
}
