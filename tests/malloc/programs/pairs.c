/* Calls malloc and free in pairs. Arguments: the number of pairs, and the bytes of a block. See
   ../instructions.py. */
#include <stdlib.h>

int main(int count, char** arguments)
{
    long left = count > 1 ? atol(arguments[1]) : 1;
    size_t const bytes = count > 2 ? (size_t)atol(arguments[2]) : 64;
    for (; left > 0; --left) {
        void* volatile block = malloc(bytes);
        free(block);
    }
    return 0;
}
