/* Fragments the heap by freeing all blocks except every sixteenth, so that nearly each page
   keeps a live block. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { blocks = 240000, bytes = 200 };
static void* all[blocks];

int main(void)
{
    for (int i = 0; i < blocks; ++i) {
        all[i] = malloc(bytes);
        memset(all[i], 1, bytes);
    }
    for (int i = 0; i < blocks; ++i)
        if (i % 16 != 0)
            free(all[i]);
    for (int step = 0; step < 400; ++step)
        usleep(5000);
    return 0;
}
