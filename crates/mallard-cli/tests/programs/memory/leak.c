/* Leaks memory: allocates blocks for each request and never frees them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static void* forget(size_t bytes)
{
    void* volatile block = malloc(bytes);
    memset(block, 1, bytes);
    return block;
}

int main(void)
{
    for (int request = 0; request < 400; ++request) {
        for (int i = 0; i < 200; ++i)
            forget(1000);
        for (int i = 0; i < 200; ++i)
            free(forget(2000));
        usleep(5000);
    }
    return 0;
}
