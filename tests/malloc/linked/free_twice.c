/* Frees a block twice: a block of malloc or, with the argument `heap`, a block of a heap. */
#include <mallard/c/malloc.h>

#include <stdlib.h>

int main(int count, char** arguments)
{
    (void)arguments;
    mallard_heap* const heap = mallard_heap_create(0);
    char* volatile block = count > 1 ? mallard_heap_allocate(heap, 40) : malloc(40);
    free(block);
    free(block);
    return 0;
}
