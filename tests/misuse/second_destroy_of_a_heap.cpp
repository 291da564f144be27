// dies: mallard: mallard_heap_destroy of ADDRESS, which is not a heap
#include <mallard/c/malloc.h>

int main()
{
    mallard_heap* const h = mallard_heap_create(nullptr);
    mallard_heap* const other = mallard_heap_create(nullptr);
    mallard_heap_destroy(h);
    mallard_heap_destroy(other);
    mallard_heap_destroy(h);
}
