// dies: mallard: realloc of ADDRESS, which is free
// checked dies: mallard: double free of ADDRESS in "malloc"
#include "act.hpp"

int main()
{
    void* const block = allocate(64);
    set_free(block);
    hidden(std::realloc(hidden(block), 128));
    return look_for_twins(64);
}
