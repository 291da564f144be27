/* Builds a structure at the start, reads it, and frees it at the end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { blocks = 60000, bytes = 1000 };
static char* all[blocks];

int main(void)
{
    for (int i = 0; i < blocks; ++i) {
        all[i] = malloc(bytes);
        memset(all[i], 1, bytes);
    }
    long sum = 0;
    for (int step = 0; step < 400; ++step) {
        for (int i = step; i < blocks; i += 400)
            sum += all[i][step];
        usleep(5000);
    }
    for (int i = 0; i < blocks; ++i)
        free(all[i]);
    return sum == blocks ? 0 : 1;
}
