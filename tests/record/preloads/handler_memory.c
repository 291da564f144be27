/* A library, preloaded after the recorder, that serves requests for 12,345,679 bytes from a static
 * buffer. It needs no lock, so a signal handler may make such a request at any time.
 */
#include <dlfcn.h>
#include <stddef.h>

static char memory[64];

void* malloc(size_t bytes)
{
    static void* (*real)(size_t);
    if (bytes == 12345679)
        return memory;
    if (real == NULL)
        *(void**)&real = dlsym(RTLD_NEXT, "malloc");
    return real(bytes);
}

void free(void* block)
{
    static void (*real)(void*);
    if (block == memory)
        return;
    if (real == NULL)
        *(void**)&real = dlsym(RTLD_NEXT, "free");
    real(block);
}
