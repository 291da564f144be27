// dies: mallard: free of ADDRESS, which is not a block of malloc
// checked dies: mallard: free of ADDRESS, which is not a block of "malloc"
#include "act.hpp"

int main()
{
    set_free(reinterpret_cast<void*>(0x10));
    return look_for_twins(64);
}
