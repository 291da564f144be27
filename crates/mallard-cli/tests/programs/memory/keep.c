/* Frees all blocks except the last one. That block is at the end of the heap, so the malloc keeps
   the pages. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { blocks = 60000, bytes = 1000 };
static void* all[blocks];

int main(void)
{
    for (int i = 0; i < blocks; ++i) {
        all[i] = malloc(bytes);
        memset(all[i], 1, bytes);
    }
    for (int i = 0; i + 1 < blocks; ++i)
        free(all[i]);
    for (int step = 0; step < 400; ++step)
        usleep(5000);
    return 0;
}
