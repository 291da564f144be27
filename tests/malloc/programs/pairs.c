/* As many pairs of malloc(64) and free as the argument says: see ../instructions.py. */
#include <stdlib.h>

int main(int count, char** arguments)
{
    long left;
    for (left = atol(arguments[count - 1]); left > 0; --left) {
        void* volatile block = malloc(64);
        free(block);
    }
    return 0;
}
