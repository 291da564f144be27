// Uses only the component malloc.
#include <mallard/c/malloc.h>

#include <cstdlib>

int main()
{
    void* const block = mallard_malloc(100);
    bool const is_ours = mallard_usable_size(block) >= 100;
    std::free(block);
    return is_ours ? 0 : 1;
}
