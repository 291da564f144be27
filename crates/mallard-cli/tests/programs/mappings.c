/* Makes 8,000 mappings in one go, as 4,000 threads do, and allocates before and after. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void allocate(int count)
{
    for (int i = 0; i < count; ++i)
        *(char volatile*)malloc(70001) = 1;
}

int main(void)
{
    allocate(100);
    for (int i = 0; i < 4000; ++i) {
        char* const two_pages =
            mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (two_pages == MAP_FAILED || mprotect(two_pages, 4096, PROT_NONE) != 0)
            return 1;
        two_pages[4096] = 1;
    }
    usleep(300000); /* the command reads the mappings meanwhile */
    allocate(100);
    return 0;
}
