// dies: mallard: realloc of ADDRESS, which is inside a block
// checked dies: mallard: free of ADDRESS, which is inside a block of "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(256);
    hidden(std::realloc(at(block, 1), 512));
    return look_for_twins(256);
}
