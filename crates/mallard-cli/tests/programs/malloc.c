/* A malloc for the tests of `mallard try`, which never frees. After 50 calls, it fails in the
   way that the environment variable WRONG names, in every program except mallard itself. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* With the environment variable CHATTY, the malloc prints more at the end of each program than a
   pipe can hold. */
__attribute__((destructor)) static void chat(void)
{
    static const char line[1000] = "statistics";
    for (int i = 0; getenv("CHATTY") != NULL && i < 100; ++i)
        if (write(STDERR_FILENO, line, sizeof line) < 0)
            return;
}

static char* next;
static int calls;

static void go_wrong(void)
{
    const char* wrong = getenv("WRONG");
    if (wrong == NULL || strcmp(program_invocation_short_name, "mallard") == 0)
        return;
    int call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (strcmp(wrong, "abort") == 0 && call == 50)
        abort();
    if (strcmp(wrong, "hang") == 0 && call == 50)
        pause();
    if (strcmp(wrong, "slow") == 0)
        for (volatile int i = 0; i < 2000; ++i) {}
}

static void* take(size_t size, size_t align)
{
    go_wrong();
    if (next == NULL) {
        char* fresh = mmap(NULL, (size_t)64 << 30, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        char* expected = NULL;
        __atomic_compare_exchange_n(&next, &expected, fresh, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    if (size > (size_t)1 << 40 || next == MAP_FAILED) {
        errno = ENOMEM;
        return NULL;
    }
    /* The size is in the 16 bytes in front of the block. */
    uintptr_t space = (uintptr_t)__atomic_fetch_add(&next, size + align + 32, __ATOMIC_RELAXED);
    uintptr_t block = (space + 16 + align - 1) / align * align;
    ((size_t*)block)[-1] = size;
    return (void*)block;
}

void* malloc(size_t size)
{
    return take(size, 16);
}
void free(void* block)
{
    (void)block;
}
void* calloc(size_t count, size_t size)
{
    return take(count * size, 16);
}
void* memalign(size_t align, size_t size)
{
    return take(size, align < 16 ? 16 : align);
}
void* aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}
size_t malloc_usable_size(void* block)
{
    return block == NULL ? 0 : ((size_t*)block)[-1];
}

int posix_memalign(void** place, size_t align, size_t size)
{
    *place = memalign(align, size);
    return *place == NULL ? ENOMEM : 0;
}

void* realloc(void* block, size_t size)
{
    void* grown = take(size, 16);
    size_t old = malloc_usable_size(block);
    if (block != NULL && grown != NULL)
        memcpy(grown, block, old < size ? old : size);
    return grown;
}
