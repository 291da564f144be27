// dies: mallard: double free of ADDRESS
// checked dies: mallard: double free of ADDRESS in "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    void* others[1000];
    for (void*& other : others)
        other = allocate(64);
    set_free(block);
    for (void* const other : others)
        set_free(other);
    set_free(block);
    return look_for_twins(64);
}
