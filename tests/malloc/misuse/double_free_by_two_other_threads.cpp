// dies: mallard: double free of ADDRESS
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    set_free_in_another_thread(block);
    set_free_in_another_thread(block);
    return look_for_twins(64);
}
