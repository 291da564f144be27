/* Serves blocks of 12,345,679 bytes from a memory of its own without a lock, so that a signal
 * handler may allocate them whatever it interrupts. Preloaded after the recorder.
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
