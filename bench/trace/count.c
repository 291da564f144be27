// A library for LD_PRELOAD that counts the calls of malloc and its relatives in one process. The
// counts show whether a recorder lost calls. A recorder may be loaded before this library. Then the
// calls of the recorder are counted too.
//
// MALLARD_BENCH_COUNT names the file of the counts: see count.h. MALLARD_BENCH_PROGRAM is the first
// word of the command line of the process. Child processes are not counted.
#include <bench/trace/count.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// The functions of the next library: the C library, or another malloc. They are looked up at the
// first call, because other libraries allocate before this one is initialised.
static struct {
    void* (*malloc)(size_t bytes);
    void* (*calloc)(size_t count, size_t bytes);
    void* (*realloc)(void* block, size_t bytes);
    void* (*memalign)(size_t align, size_t bytes);
    void* (*aligned_alloc)(size_t align, size_t bytes);
    int (*posix_memalign)(void** block, size_t align, size_t bytes);
    void* (*valloc)(size_t bytes);
    void* (*pvalloc)(size_t bytes);
    void (*free)(void* block);
} next;

static void find(void* function, const char* name)
{
    void* const found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found); // ISO C cannot cast void* to a function
}

// dlsym allocates nothing when it finds the name.
static void find_next(void)
{
    if (next.malloc != NULL)
        return;
    find(&next.calloc, "calloc");
    find(&next.realloc, "realloc");
    find(&next.memalign, "memalign");
    find(&next.aligned_alloc, "aligned_alloc");
    find(&next.posix_memalign, "posix_memalign");
    find(&next.valloc, "valloc");
    find(&next.pvalloc, "pvalloc");
    find(&next.free, "free");
    find(&next.malloc, "malloc");
}

static struct call_counts private_counts;
static struct call_counts* counts = &private_counts; // `start` maps the file instead

static void add(uint64_t* count)
{
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

static void* counted(void* block)
{
    if (block != NULL)
        add(&counts->allocations);
    return block;
}

static void stop_in_child(void)
{
    counts = &private_counts;
}

__attribute__((constructor)) static void start(void)
{
    const char* const program = getenv("MALLARD_BENCH_PROGRAM");
    const char* const name = getenv("MALLARD_BENCH_COUNT");
    if (program == NULL || name == NULL || strcmp(program, program_invocation_name) != 0)
        return; // this process is a recorder that will start the program
    int const file = open(name, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    void* const mapped = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return;
    memcpy(mapped, &private_counts, sizeof private_counts);
    counts = mapped;
    pthread_atfork(NULL, NULL, stop_in_child);
    // Programs that this program starts are not counted. The program sees the environment that it
    // has without this library, because some programs allocate for each variable.
    unsetenv("MALLARD_BENCH_COUNT");
    unsetenv("MALLARD_BENCH_PROGRAM");
    unsetenv("LD_PRELOAD");
}

void* malloc(size_t bytes)
{
    find_next();
    return counted(next.malloc(bytes));
}

void* calloc(size_t count, size_t bytes)
{
    find_next();
    return counted(next.calloc(count, bytes));
}

void free(void* block)
{
    if (block != NULL)
        add(&counts->frees);
    find_next();
    next.free(block);
}

void* realloc(void* block, size_t bytes)
{
    find_next();
    void* const moved = next.realloc(block, bytes);
    if (block != NULL && moved == NULL && bytes == 0)
        add(&counts->frees);
    return counted(moved);
}

void* reallocarray(void* block, size_t count, size_t bytes)
{
    size_t all = 0;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, all);
}

void* memalign(size_t align, size_t bytes)
{
    find_next();
    return counted(next.memalign(align, bytes));
}

void* aligned_alloc(size_t align, size_t bytes)
{
    find_next();
    return counted(next.aligned_alloc(align, bytes));
}

int posix_memalign(void** block, size_t align, size_t bytes)
{
    find_next();
    int const error = next.posix_memalign(block, align, bytes);
    if (error == 0)
        counted(*block);
    return error;
}

void* valloc(size_t bytes)
{
    find_next();
    return counted(next.valloc(bytes));
}

void* pvalloc(size_t bytes)
{
    find_next();
    return counted(next.pvalloc(bytes));
}
