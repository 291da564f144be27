/* Runs one "act", a thing that programs under a plan do, chosen by name: `acts NAME [ARGUMENT...]`.
 * Each act checks the contents of its blocks. The tests have rules for the functions `first`,
 * `second`, `xmalloc`, and so on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void need(int fine, const char* what)
{
    if (!fine) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        _exit(1);
    }
}

static int wait_for(pid_t child)
{
    int status = 0;
    need(waitpid(child, &status, 0) == child, "waitpid");
    return status;
}

/* --- which rule an allocation belongs to --- */

__attribute__((noinline)) void* first(size_t bytes)
{
    void* volatile block = malloc(bytes);
    return block;
}
__attribute__((noinline)) void* second(size_t bytes)
{
    void* volatile block = malloc(bytes);
    return block;
}
__attribute__((noinline)) void* xmalloc(size_t bytes)
{
    void* volatile block = malloc(bytes);
    return block;
}
__attribute__((noinline)) void* left(size_t bytes)
{
    void* volatile block = xmalloc(bytes);
    return block;
}
__attribute__((noinline)) void* right(size_t bytes)
{
    void* volatile block = xmalloc(bytes);
    return block;
}
__attribute__((noinline)) void* outer(size_t bytes)
{
    void* volatile block = left(bytes);
    return block;
}

static void fill_and_free(void* block, size_t bytes)
{
    need(block != NULL, "malloc");
    memset(block, 0x5a, bytes);
    free(block);
}

static void act_callers(char** unused)
{
    (void)unused;
    for (int i = 0; i < 100; ++i)
        fill_and_free(first(24), 24);
    for (int i = 0; i < 50; ++i)
        fill_and_free(second(1000), 1000);
    for (int i = 0; i < 40; ++i)
        fill_and_free(left(48), 48);
    for (int i = 0; i < 30; ++i)
        fill_and_free(right(48), 48);
    for (int i = 0; i < 20; ++i)
        fill_and_free(outer(48), 48);
    puts("done");
}

/* Works between the frees of its two blocks. */
static void act_pause(char** unused)
{
    (void)unused;
    void* const one = first(24);
    void* const other = first(24);
    free(one);
    usleep(50000);
    free(other);
    puts("done");
}

/* --- blocks that stay allocated --- */

/* Keeps COUNT blocks of BYTES bytes from `first`, and frees all at the end. */
static void act_keep(char** words)
{
    size_t const count = strtoull(words[0], NULL, 10), bytes = strtoull(words[1], NULL, 10);
    unsigned char** const kept = mmap(NULL, count * sizeof *kept, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(kept != MAP_FAILED, "mmap");
    for (size_t i = 0; i < count; ++i) {
        kept[i] = first(bytes);
        need(kept[i] != NULL, "malloc");
        memset(kept[i], (int)(i & 255), bytes);
    }
    for (size_t i = 0; i < count; ++i) {
        for (size_t at = 0; at < bytes; ++at)
            need(kept[i][at] == (i & 255), "contents");
        free(kept[i]);
    }
    puts("done");
}

/* Allocates and frees COUNT blocks from `first`, and keeps one in 1000 of them. */
static void act_keep_some(char** words)
{
    size_t const count = strtoull(words[0], NULL, 10);
    for (size_t i = 0; i < count; ++i) {
        void* const block = first(64);
        need(block != NULL, "malloc");
        memset(block, 1, 64);
        if (i % 1000 != 0)
            free(block);
    }
    puts("done");
}

/* Repeats COUNT times: allocates 10,000 blocks of several sizes, and frees them in the same
   order. */
static void act_rounds(char** words)
{
    static void* blocks[10000];
    for (long rounds = atol(words[0]); rounds > 0; --rounds) {
        for (size_t i = 0; i < 10000; ++i)
            memset(blocks[i] = first(i % 500 + 1), 7, i % 500 + 1);
        for (size_t i = 0; i < 10000; ++i)
            free(blocks[i]);
    }
    puts("done");
}

/* --- random calls of all functions, against a model --- */

static uint64_t chance_state;

static uint64_t chance(uint64_t below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (chance_state >> 33) % below;
}

struct held {
    unsigned char* at;
    size_t bytes;
    unsigned char value;
};

static void check(const struct held* h)
{
    for (size_t i = 0; i < h->bytes; ++i)
        need(h->at[i] == h->value, "contents");
}

static void fill(struct held* h, unsigned char* at, size_t bytes, size_t align)
{
    need(at != NULL, "allocation");
    need((uintptr_t)at % align == 0, "alignment");
    need(malloc_usable_size(at) >= bytes, "usable size");
    h->at = at;
    h->bytes = bytes;
    h->value = (unsigned char)chance(256);
    memset(at, h->value, bytes);
}

__attribute__((noinline)) static void allocate(struct held* h, size_t bytes)
{
    size_t const align = (size_t)8 << chance(10);
    void* block = NULL;
    switch (chance(8)) {
    case 0:
        block = calloc(bytes == 0 ? 0 : 1, bytes);
        for (size_t i = 0; i < bytes; ++i)
            need(((unsigned char*)block)[i] == 0, "calloc");
        return fill(h, block, bytes, 16);
    case 1:
        need(posix_memalign(&block, align, bytes) == 0, "posix_memalign");
        return fill(h, block, bytes, align);
    case 2:
        return fill(h, memalign(align, bytes), bytes, align);
    case 3:
        return fill(h, aligned_alloc(align, bytes), bytes, align);
    case 4:
        return fill(h, realloc(NULL, bytes), bytes, 16);
    default:
        return fill(h, malloc(bytes), bytes, 16);
    }
}

static size_t some_bytes(void)
{
    static const size_t below[] = {32, 200, 200, 1500, 1500, 20000, 50000};
    return chance(below[chance(7)]);
}

static void act_random(char** words)
{
    static struct held all[2000];
    chance_state = strtoull(words[0], NULL, 10);
    for (int i = 0; i < 60000; ++i) {
        struct held* const h = &all[chance(2000)];
        if (h->at == NULL) {
            allocate(h, some_bytes());
        } else if (chance(3) == 0) {
            size_t const bytes = some_bytes() + 1;
            struct held before = *h;
            before.at = realloc(h->at, bytes);
            if (bytes < before.bytes)
                before.bytes = bytes;
            check(&before);
            fill(h, before.at, bytes, 16);
        } else {
            check(h);
            free(h->at);
            h->at = NULL;
        }
    }
    for (int i = 0; i < 2000; ++i)
        free(all[i].at);
    puts("done");
}

/* Prints the results of calls that fail, and of calls whose results differ between C libraries. */
static void act_edges(char** unused)
{
    (void)unused;
    void* block = (void*)1;
    for (size_t align = 0; align < 70; ++align) {
        block = (void*)1;
        int const result = posix_memalign(&block, align, 10);
        printf("posix_memalign %zu: %d %d\n", align, result, block == (void*)1);
        if (result == 0)
            free(block);
        errno = 0;
        block = memalign(align, 10);
        printf("memalign %zu: %d %d\n", align, block != NULL, errno);
        free(block);
        errno = 0;
        block = aligned_alloc(align, 10);
        printf("aligned_alloc %zu: %d %d\n", align, block != NULL, errno);
        free(block);
    }
    volatile size_t const huge = PTRDIFF_MAX;
    errno = 0;
    printf("malloc: %d", malloc(huge) == NULL);
    printf(" %d\n", errno);
    errno = 0;
    printf("calloc: %d", calloc(huge, 16) == NULL);
    printf(" %d\n", errno);
    block = malloc(50);
    memset(block, 3, 50);
    errno = 0;
    printf("realloc: %d", realloc(block, huge) == NULL);
    printf(" %d %d\n", errno, *(char*)block);
    errno = 0;
    printf("reallocarray: %d", reallocarray(block, huge, 16) == NULL);
    printf(" %d %d\n", errno, *(char*)block);
    printf("realloc to 0: %d\n", realloc(block, 0) == NULL);
    block = realloc(NULL, 0);
    printf("realloc of null to 0: %d\n", block != NULL);
    free(block);
    void* const empty[] = {malloc(0), malloc(0), calloc(0, 5), calloc(5, 0)};
    for (size_t i = 0; i < 4; ++i)
        for (size_t j = 0; j < i; ++j)
            need(empty[i] != NULL && empty[i] != empty[j], "blocks of no bytes");
    for (size_t i = 0; i < 4; ++i)
        free(empty[i]);
    free(NULL);
    printf("usable size of null: %zu\n", malloc_usable_size(NULL));
    puts("done");
}

/* Checks that malloc and free do not change errno and dlerror. */
static void act_errno(char** unused)
{
    (void)unused;
    static void* blocks[40000];
    for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < 40000; ++i) {
            errno = 77;
            blocks[i] = first(i % 300);
            need(errno == 77 && blocks[i] != NULL, "errno of malloc");
        }
        for (size_t i = 0; i < 40000; ++i) {
            errno = 77;
            free(blocks[i]);
            need(errno == 77, "errno of free");
        }
    }
    need(dlerror() == NULL, "dlerror");
    puts("done");
}

/* --- threads --- */

static void run_threads(int count, void* (*run)(void*), void* argument)
{
    pthread_t threads[64];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < count; ++i)
        need((errno = pthread_create(&threads[i], &small, run, argument)) == 0, "pthread_create");
    for (int i = 0; i < count; ++i)
        pthread_join(threads[i], NULL);
}

static _Atomic(unsigned char*) slots[256];

/* Stores a block in a random slot, and frees the block that any thread has stored there before. */
static void* exchange(void* seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed * 7919 + (uint64_t)syscall(SYS_gettid);
    for (int i = 0; i < 60000; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t const bytes = (state >> 40) % 400 + 2;
        unsigned char* const block = state >> 63 ? first(bytes) : second(bytes);
        need(block != NULL, "malloc");
        memset(block, (int)bytes & 255, bytes);
        block[0] = (unsigned char)(bytes >> 8);
        unsigned char* const old = atomic_exchange(&slots[(state >> 33) % 256], block);
        if (old != NULL) {
            need(old[0] <= 1, "first byte");
            free(old);
        }
    }
    return NULL;
}

static void act_exchange(char** words)
{
    run_threads(atoi(words[0]), exchange, NULL);
    for (int i = 0; i < 256; ++i)
        free(slots[i]);
    puts("done");
}

static unsigned char* left_behind[20000];
static atomic_int left_count;

static void* leave_a_block(void* unused)
{
    unsigned char* const block = first(600);
    memset(block, 9, 600);
    left_behind[atomic_fetch_add(&left_count, 1)] = block;
    for (int i = 0; i < 10; ++i)
        fill_and_free(second(100), 100);
    return unused;
}

/* Runs COUNT threads that exit with a live block, which the main thread frees. */
static void act_ends(char** words)
{
    for (int i = 0; i < atoi(words[0]) / 50; ++i)
        run_threads(50, leave_a_block, NULL);
    for (int i = 0; i < left_count; ++i) {
        for (int at = 0; at < 600; ++at)
            need(left_behind[i][at] == 9, "contents");
        free(left_behind[i]);
    }
    puts("done");
}

static pthread_key_t last_key;

static void free_late(void* block)
{
    static __thread int rounds;
    fill_and_free(block, 100);
    if (++rounds < 4)
        pthread_setspecific(last_key, first(100));
    fill_and_free(second(100), 100);
}

static void* leave_to_a_key(void* unused)
{
    pthread_setspecific(last_key, first(100));
    return unused;
}

static void act_late_frees(char** unused)
{
    (void)unused;
    need(pthread_key_create(&last_key, free_late) == 0, "pthread_key_create");
    for (int i = 0; i < 20; ++i)
        run_threads(20, leave_to_a_key, NULL);
    puts("done");
}

/* --- processes --- */

static void* allocate_until_stopped(void* stop)
{
    while (!atomic_load((atomic_int*)stop)) {
        for (int i = 0; i < 100; ++i) {
            void* const block = first(100 + (size_t)i);
            unsigned char* const old = atomic_exchange(&slots[i], block);
            free(old);
        }
    }
    return NULL;
}

/* Forks COUNT times while other threads allocate and free. The children allocate and free too. */
static void act_fork(char** words)
{
    static atomic_int stop;
    pthread_t others[3];
    for (int i = 0; i < 3; ++i)
        need(pthread_create(&others[i], NULL, allocate_until_stopped, &stop) == 0,
             "pthread_create");
    for (int i = 0; i < atoi(words[0]); ++i) {
        unsigned char* const mine = first(300);
        memset(mine, 4, 300);
        for (int n = 0; n < 256; ++n) /* the other threads free these blocks during the fork */
            free(atomic_exchange(&slots[n], first(100 + (size_t)n % 5 * 100)));
        pid_t const child = fork();
        need(child >= 0, "fork");
        if (child == 0) {
            for (int at = 0; at < 300; ++at)
                need(mine[at] == 4, "contents");
            free(mine);
            for (int n = 0; n < 2000; ++n)
                fill_and_free(first((size_t)n), (size_t)n);
            static unsigned char* many[2000];
            for (int n = 0; n < 2000; ++n)
                memset(many[n] = first(300), n & 255, 300);
            for (int n = 0; n < 2000; ++n) {
                for (int at = 0; at < 300; ++at)
                    need(many[n][at] == (n & 255), "contents of many");
                free(many[n]);
            }
            for (int n = 0; n < 256; ++n)
                free(atomic_exchange(&slots[n], first(10)));
            for (int n = 0; n < 5; ++n)
                fill_and_free(outer(20), 20);
            _exit(0);
        }
        need(wait_for(child) == 0, "child");
        free(mine);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; ++i)
        pthread_join(others[i], NULL);
    puts("done");
}

/* Forks by a system call, without the fork handlers, while other threads allocate. */
static void act_clone(char** words)
{
    static atomic_int stop;
    pthread_t others[2];
    for (int i = 0; i < 2; ++i)
        need(pthread_create(&others[i], NULL, allocate_until_stopped, &stop) == 0,
             "pthread_create");
    for (int i = 0; i < atoi(words[0]); ++i) {
        pid_t const child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
        if (child == 0) {
            for (int n = 0; n < 100; ++n) /* by a rule, because libc's malloc may be locked */
                fill_and_free(first(100), 100);
            _exit(0);
        }
        need(wait_for(child) == 0, "child");
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; ++i)
        pthread_join(others[i], NULL);
    puts("done");
}

static void act_fork_and_exit(char** unused)
{
    (void)unused;
    fill_and_free(first(10), 10);
    pid_t const child = fork();
    if (child != 0)
        need(wait_for(child) == 0, "child");
    puts("done");
}

static void act_exec(char** words)
{
    fill_and_free(first(10), 10);
    execv(words[0], words);
    need(0, "exec");
}

static void act_system(char** words)
{
    fill_and_free(first(10), 10);
    fflush(stdout);
    need(system(words[0]) == 0, "system");
    fill_and_free(first(10), 10);
    puts("done");
}

static void act_close_all(char** words)
{
    printf("done\n");
    fflush(stdout);
    for (int file = 0; file < 1024; ++file)
        close(file);
    for (int i = 0; i < 100000; ++i)
        fill_and_free(first((size_t)i % 900), (size_t)i % 900);
    exit(atoi(words[0]));
}

/* --- signals, jumps, stacks --- */

static volatile sig_atomic_t signals;
static unsigned char* volatile from_handler;

static void allocate_in_handler(int unused)
{
    (void)unused;
    int const before = errno;
    unsigned char* const block = second(50);
    memset(block, 6, 50);
    free(from_handler);
    from_handler = block;
    for (size_t i = 0; i < 20; ++i)
        fill_and_free(first(i * 300), i * 300);
    signals += 1;
    errno = before;
}

static void act_signals(char** words)
{
    static void* blocks[300];
    struct sigaction action = {.sa_handler = allocate_in_handler};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval const often = {{0, 150}, {0, 150}};
    setitimer(ITIMER_REAL, &often, NULL);
    int const wanted = atoi(words[0]);
    for (long i = 0; signals < wanted; ++i) {
        size_t const bytes = (size_t)(i * 37 % 3000);
        free(blocks[i % 300]);
        blocks[i % 300] = first(bytes);
        memset(blocks[i % 300], 1, bytes);
        if (i % 7 == 0)
            blocks[i % 300] = realloc(blocks[i % 300], bytes + 100);
    }
    struct itimerval const never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    puts("done");
}

static jmp_buf back;

__attribute__((noinline)) static void jump(int depth)
{
    fill_and_free(first(30), 30);
    if (depth == 0)
        longjmp(back, 1);
    if (depth > 0)
        jump(depth - 1);
    fill_and_free(first(30), 30);
}

static void act_longjmp(char** unused)
{
    (void)unused;
    volatile int jumps = 0;
    while (jumps < 1000) {
        if (setjmp(back) == 0)
            jump(jumps % 50);
        jumps += 1;
        fill_and_free(outer(30), 30);
    }
    puts("done");
}

static ucontext_t main_context, fibers[8];

static void run_fiber(int number)
{
    for (int i = 0; i < 200; ++i) {
        unsigned char* const block = number % 2 == 0 ? first(50) : outer(50);
        memset(block, number, 50);
        swapcontext(&fibers[number], &main_context);
        for (int at = 0; at < 50; ++at)
            need(block[at] == number, "contents");
        free(block);
    }
}

static void act_fibers(char** unused)
{
    (void)unused;
    void* stacks[8];
    for (int i = 0; i < 8; ++i) {
        stacks[i] = first(16000); /* the stack of a fiber is a block of the rule */
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i];
        fibers[i].uc_stack.ss_size = 16000;
        fibers[i].uc_link = &main_context;
        makecontext(&fibers[i], (void (*)(void))run_fiber, 1, i);
    }
    for (int turn = 0; turn < 201; ++turn)
        for (int i = 0; i < 8; ++i)
            swapcontext(&main_context, &fibers[i]);
    for (int i = 0; i < 8; ++i)
        free(stacks[i]);
    puts("done");
}

/* Allocates in a signal handler on a small alternate stack. This is the first call of its
   allocation function. */
static void allocate_on_small_stack(int unused)
{
    (void)unused;
    fill_and_free(outer(20), 20);
    fill_and_free(first(20), 20);
}

static void act_small_stack(char** unused)
{
    (void)unused;
    size_t const bytes = 12288; /* the kernel uses up to 3,000 bytes for registers */
    char* const at =
        mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(at != MAP_FAILED && mprotect(at, 4096, PROT_NONE) == 0, "mmap");
    stack_t const small = {.ss_sp = at + 4096, .ss_size = bytes};
    need(sigaltstack(&small, NULL) == 0, "sigaltstack");
    struct sigaction action = {.sa_handler = allocate_on_small_stack, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    puts("done");
}

/* --- plugins --- */

static void* plugin_place;

/* Prints the peak of the resident memory, if the test requests it. */
static void show_peak(void)
{
    char line[256];
    FILE* const status = getenv("SHOW_PEAK") != NULL ? fopen("/proc/self/status", "r") : NULL;
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            fputs(line, stdout);
}

static void* use_plugin(const char* path, int flags)
{
    void* const plugin = dlopen(path, RTLD_NOW | flags);
    need(plugin != NULL, dlerror());
    void* (*make)(size_t);
    void (*destroy)(void*);
    *(void**)&make = dlsym(plugin, "plugin_make");
    *(void**)&destroy = dlsym(plugin, "plugin_destroy");
    Dl_info info;
    need(dladdr((void*)make, &info) != 0, "dladdr");
    plugin_place = info.dli_fbase;
    for (size_t i = 0; i < 10; ++i)
        fill_and_free(make(40), 40);
    for (size_t i = 0; i < 10; ++i) {
        void* const block = first(40);
        memset(block, 1, 40);
        destroy(block);
    }
    void* const kept = make(40);
    memset(kept, 8, 40);
    dlclose(plugin);
    return kept;
}

/* Repeats COUNT times: loads, uses and unloads each of the plugins. */
static void act_plugins(char** words)
{
    for (int count = atoi(words[0]); count > 0; --count)
        for (char** path = words + 1; *path != NULL; ++path)
            fill_and_free(use_plugin(*path, count % 3 == 0 ? RTLD_DEEPBIND : 0), 40);
    show_peak();
    puts("done");
}

/* Like act_plugins, but each plugin stays loaded. */
static void act_plugins_together(char** words)
{
    for (int count = atoi(words[0]); count > 0; --count)
        for (char** path = words + 1; *path != NULL; ++path)
            fill_and_free(use_plugin(*path, RTLD_NODELETE), 40);
    show_peak();
    puts("done");
}

/* Loads the plugin at COUNT different addresses. */
static void act_moving_plugin(char** words)
{
    int places = 0;
    for (int count = atoi(words[0]); count > 0; --count) {
        fill_and_free(use_plugin(words[1], 0), 40);
        /* Maps a page where the plugin was, so that the plugin cannot be loaded there again. */
        void* const page = mmap(plugin_place, 4096, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        places += page == plugin_place;
    }
    need(places == atoi(words[0]), "the plugin moves");
    puts("done");
}

static void* load_often(void* path)
{
    for (int i = 0; i < 200; ++i)
        fill_and_free(use_plugin(path, 0), 40);
    return NULL;
}

/* Loads and unloads a plugin while other threads allocate. */
static void act_plugins_and_threads(char** words)
{
    pthread_t loader;
    need(pthread_create(&loader, NULL, load_often, words[0]) == 0, "pthread_create");
    run_threads(3, exchange, NULL);
    pthread_join(loader, NULL);
    puts("done");
}

static pthread_mutex_t of_the_program = PTHREAD_MUTEX_INITIALIZER;
static atomic_int is_in_callback, is_locked;

static void* allocate_with_lock(void* unused)
{
    pthread_mutex_lock(&of_the_program);
    atomic_store(&is_locked, 1);
    while (!atomic_load(&is_in_callback))
        usleep(100);
    usleep(20000);
    fill_and_free(second(20), 20); /* the first allocation of this caller */
    fill_and_free(outer(20), 20);
    pthread_mutex_unlock(&of_the_program);
    return unused;
}

static int lock_in_callback(struct dl_phdr_info* info, size_t bytes, void* unused)
{
    (void)info;
    (void)bytes;
    (void)unused;
    atomic_store(&is_in_callback, 1);
    pthread_mutex_lock(&of_the_program);
    pthread_mutex_unlock(&of_the_program);
    return 1;
}

/* Lets a thread allocate while it holds a lock for which a callback of the dynamic linker waits. */
static void act_lock_order(char** unused)
{
    (void)unused;
    pthread_t other;
    need(pthread_create(&other, NULL, allocate_with_lock, NULL) == 0, "pthread_create");
    while (!atomic_load(&is_locked))
        usleep(100);
    dl_iterate_phdr(lock_in_callback, NULL);
    pthread_join(other, NULL);
    puts("done");
}

/* Loads a library whose constructor waits for a thread that allocates: plugins/waits.cpp. */
static void act_load(char** words)
{
    need(dlopen(words[0], RTLD_NOW) != NULL, dlerror());
    puts("done");
}

/* --- memory --- */

/* Uses MEBIBYTES of memory in blocks of 1 MiB. */
static void act_use(char** words)
{
    for (int i = atoi(words[0]); i > 0; --i) {
        void* const block = second(1 << 20);
        need(block != NULL, "malloc");
        memset(block, 1, 1 << 20);
        fill_and_free(first(100), 100);
    }
    puts("done");
}

/* Writes a title over its environment, as redis-server does. */
static void act_title(char** unused)
{
    extern char** environ;
    (void)unused;
    for (char** variable = environ; *variable != NULL; ++variable)
        memset(*variable, 't', strlen(*variable));
    fill_and_free(first(10), 10);
    puts("done");
}

static void act_wait(char** words)
{
    puts("ready");
    fflush(stdout);
    getchar();
    fill_and_free(first(10), 10);
    if (words[0] != NULL)
        fill_and_free(use_plugin(words[0], 0), 40);
    puts("done");
}

static const struct {
    const char* name;
    void (*act)(char**);
} acts[] = {
    {"callers", act_callers},
    {"pause", act_pause},
    {"keep", act_keep},
    {"keep_some", act_keep_some},
    {"rounds", act_rounds},
    {"random", act_random},
    {"edges", act_edges},
    {"errno", act_errno},
    {"exchange", act_exchange},
    {"ends", act_ends},
    {"late_frees", act_late_frees},
    {"fork", act_fork},
    {"clone", act_clone},
    {"fork_and_exit", act_fork_and_exit},
    {"exec", act_exec},
    {"system", act_system},
    {"close_all", act_close_all},
    {"signals", act_signals},
    {"longjmp", act_longjmp},
    {"fibers", act_fibers},
    {"small_stack", act_small_stack},
    {"plugins", act_plugins},
    {"plugins_together", act_plugins_together},
    {"moving_plugin", act_moving_plugin},
    {"plugins_and_threads", act_plugins_and_threads},
    {"lock_order", act_lock_order},
    {"load", act_load},
    {"use", act_use},
    {"title", act_title},
    {"wait", act_wait},
};

int main(int count, char** words)
{
    for (size_t i = 0; count > 1 && i < sizeof acts / sizeof *acts; ++i) {
        if (strcmp(words[1], acts[i].name) == 0) {
            acts[i].act(words + 2);
            return 0;
        }
    }
    fprintf(stderr, "acts: no act of this name\n");
    return 2;
}
