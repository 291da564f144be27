/* A library, preloaded after the recorder, that counts the calls that reach it in three groups: all
 * functions that allocate, realloc, and free. The three 64-bit counters are in the file
 * that the environment variable COUNTS names, so that they survive _exit. Only the first process
 * counts.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t unused[4];
static uint64_t* counts = unused;

static void* (*real_malloc)(size_t);
static void* (*real_calloc)(size_t, size_t);
static void* (*real_realloc)(void*, size_t);
static void* (*real_memalign)(size_t, size_t);
static void* (*real_aligned_alloc)(size_t, size_t);
static int (*real_posix_memalign)(void**, size_t, size_t);
static void (*real_free)(void*);

static void stop_counting(void)
{
    counts = unused;
}

static void look_up(void)
{
    *(void**)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void**)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void**)&real_memalign = dlsym(RTLD_NEXT, "memalign");
    *(void**)&real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void**)&real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void**)&real_free = dlsym(RTLD_NEXT, "free");
    *(void**)&real_malloc = dlsym(RTLD_NEXT, "malloc");
}

static __attribute__((constructor)) void start_counting(void)
{
    const char* const path = getenv("COUNTS");
    int const file = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    uint64_t* const shared = mmap(NULL, 32, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED || shared[3] != 0)
        return;
    shared[3] = (uint64_t)getpid();
    for (int i = 0; i < 3; ++i)
        shared[i] = unused[i];
    counts = shared;
    pthread_atfork(NULL, NULL, stop_counting);
}

static void count(int what)
{
    if (real_malloc == NULL)
        look_up();
    __atomic_fetch_add(&counts[what], 1, __ATOMIC_RELAXED);
}

void* malloc(size_t bytes)
{
    count(0);
    return real_malloc(bytes);
}
void* calloc(size_t n, size_t bytes)
{
    count(0);
    return real_calloc(n, bytes);
}
void* memalign(size_t align, size_t bytes)
{
    count(0);
    return real_memalign(align, bytes);
}
void* aligned_alloc(size_t align, size_t bytes)
{
    count(0);
    return real_aligned_alloc(align, bytes);
}
int posix_memalign(void** block, size_t align, size_t bytes)
{
    count(0);
    return real_posix_memalign(block, align, bytes);
}
void* realloc(void* block, size_t bytes)
{
    count(1);
    return real_realloc(block, bytes);
}
void free(void* block)
{
    if (block == NULL)
        return;
    count(2);
    real_free(block);
}
