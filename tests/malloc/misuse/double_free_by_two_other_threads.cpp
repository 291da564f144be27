// dies: mallard: double free of ADDRESS
// checked dies: mallard: double free of ADDRESS in "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    set_free_in_another_thread(block);
    set_free_in_another_thread(block);
    return look_for_twins(64);
}
