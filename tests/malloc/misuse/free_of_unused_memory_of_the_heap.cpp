// dies: mallard: free of ADDRESS, which is not a block of malloc
// checked dies: mallard: free of ADDRESS, which is not a block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    set_free(at(block, std::ptrdiff_t{1} << 30)); // far above the commit limit
    return look_for_twins(64);
}
