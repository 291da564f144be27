/* Prints whether malloc asks the kernel for huge pages, for three blocks: the first block, the
 * last one of many small blocks (64 MiB in all), and a block of 64 MiB. Also checks that blocks
 * keep their contents, before and after a free. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { count = 640, bytes = 100 * 1024, large = 64 << 20 };

/* Returns 1 if malloc has asked for huge pages for the block, 0 if not, and -1 if /proc does not
   show it. */
static int is_huge(const void* block)
{
    FILE* const maps = fopen("/proc/self/smaps", "r");
    char line[512];
    int here = 0;
    int huge = -1;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long first = 0;
        unsigned long end = 0;
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            here = (uintptr_t)block >= first && (uintptr_t)block < end;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            huge = strstr(line, " hg") != NULL;
    }
    if (maps != NULL)
        fclose(maps);
    FILE* const enabled = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (enabled == NULL)
        return -1;
    fclose(enabled);
    return huge;
}

int main(void)
{
    static char* blocks[count];
    char* const first = malloc(100);
    char* const mapping = malloc(large);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < count; ++i) {
            blocks[i] = malloc(bytes);
            memset(blocks[i], i, bytes);
        }
        memset(mapping, round, large);
        for (int i = 0; i < count; ++i)
            if (blocks[i][bytes - 1] != (char)i)
                return 1;
        if (round == 2)
            break;
        for (int i = 0; i < count; ++i)
            free(blocks[i]);
    }
    printf("%d %d %d\n", is_huge(first), is_huge(blocks[count - 1]), is_huge(mapping));
    return 0;
}
