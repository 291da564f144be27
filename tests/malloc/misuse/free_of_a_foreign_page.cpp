// dies: mallard: free of ADDRESS, which is not a block of malloc
// checked dies: mallard: free of ADDRESS, which is not a block of "malloc"
#include "act.hpp"

#include <sys/mman.h>

int main()
{
    set_free(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return look_for_twins(64);
}
