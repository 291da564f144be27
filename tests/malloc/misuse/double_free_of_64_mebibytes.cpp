// dies: mallard: free of ADDRESS, which is not a block of malloc
// checked dies: mallard: free of ADDRESS, which is not a block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(bytes_huge);
    set_free(block);
    set_free(block);
    return look_for_twins(bytes_huge);
}
