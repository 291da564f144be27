// dies: mallard: double free of ADDRESS
// checked dies: mallard: double free of ADDRESS in "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    void* const other = allocate(64);
    set_free(block);
    set_free(other);
    set_free(block);
    return look_for_twins(64);
}
