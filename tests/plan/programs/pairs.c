/* Calls malloc and free in pairs. Arguments: the number of pairs, and the bytes of a block. See
   ../instructions.py. */
#include <stdlib.h>

__attribute__((noinline)) void pairs(long left, size_t bytes)
{
    void* volatile before = NULL; /* so that there is always a block in use */
    for (; left > 0; --left) {
        void* const block = malloc(bytes);
        free(before);
        before = block;
    }
    free(before);
}

int main(int count, char** arguments)
{
    pairs(count > 1 ? atol(arguments[1]) : 1, count > 2 ? (size_t)atol(arguments[2]) : 64);
    return 0;
}
