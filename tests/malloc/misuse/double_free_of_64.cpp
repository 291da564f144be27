// dies: mallard: double free of ADDRESS
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    set_free(block);
    set_free(block);
    return look_for_twins(64);
}
