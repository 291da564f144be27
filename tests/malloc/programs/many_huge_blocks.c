/* Allocates 20,000 blocks of more than 32 MiB and frees every second one. Checks that the blocks
   use few of the mappings that a process may have, and that all memory is returned in the end. */
#include <stdio.h>
#include <stdlib.h>

enum { count = 20000, mappings_most = 5000 };

static int mappings(void)
{
    int lines = 0, c;
    FILE* const file = fopen("/proc/self/maps", "r");
    if (file == NULL)
        exit(77);
    while ((c = getc(file)) != EOF)
        lines += c == '\n';
    fclose(file);
    return lines;
}

int main(void)
{
    static char* blocks[count];
    int i, all, half, none;
    for (i = 0; i < count; ++i) {
        blocks[i] = malloc((33u << 20) + (i & 1) * 4096u);
        if (blocks[i] == NULL) {
            printf("block %d is refused\n", i);
            return 1;
        }
        blocks[i][0] = 1;
    }
    all = mappings();
    for (i = 0; i < count; i += 2)
        free(blocks[i]);
    half = mappings();
    for (i = 1; i < count; i += 2)
        free(blocks[i]);
    none = mappings();
    printf("%d mappings, %d when half are freed, %d when all are\n", all, half, none);
    return all > mappings_most || half > mappings_most || none > 200;
}
