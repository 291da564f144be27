/* Runs one "act", a thing that recorded programs do, chosen by name: `acts NAME [ARGUMENT]`. Blocks
 * that the tests look for have sizes from 70,000 on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static void pair(size_t bytes)
{
    void* volatile block = malloc(bytes);
    free(block);
}

static void need(int fine, const char* what)
{
    if (!fine) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static int wait_for(pid_t child)
{
    int status = 0;
    need(waitpid(child, &status, 0) == child, "waitpid");
    return status;
}

/* --- processes --- */

static void act_fork(const char* unused)
{
    (void)unused;
    pair(70001);
    pid_t const child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; ++i)
            pair(70002);
        _exit(0);
    }
    for (int i = 0; i < 1000; ++i)
        pair(70003);
    need(wait_for(child) == 0, "child");
}

static void act_clone(const char* unused) /* forks without fork handlers */
{
    (void)unused;
    pair(70001);
    pid_t const child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
    if (child == 0) {
        pair(70002);
        _exit(0);
    }
    need(wait_for(child) == 0, "child");
    pair(70003);
}

static void act_vfork(const char* unused)
{
    (void)unused;
    char* const arguments[] = {"true", NULL};
    pair(70001);
    pid_t child = vfork();
    if (child == 0) {
        execv("/bin/true", arguments);
        _exit(1);
    }
    need(wait_for(child) == 0, "vfork");
    need(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0, "posix_spawn");
    need(wait_for(child) == 0, "spawned");
    pair(70003);
}

static void act_exec(const char* self)
{
    pair(70001);
    execl(self, self, "once", NULL);
    need(0, "exec");
}

static void act_spawn(const char* self)
{
    char* const arguments[] = {(char*)self, "once", NULL};
    pid_t child = 0;
    pair(70001);
    need(posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0, "posix_spawn");
    need(wait_for(child) == 0, "spawned");
}

static void act_once(const char* unused)
{
    (void)unused;
    pair(70005);
}

static void act_quick_exit(const char* unused)
{
    (void)unused;
    pair(70001);
    _exit(7);
}

/* With preloads/forks.c, each call forks, and the child returns from the call and exits. The
 * recorder times one free in 64. */
static void act_forks_in_calls(const char* unused)
{
    (void)unused;
    pid_t const first = getpid();
    for (int i = 0; i < 64; ++i) {
        void* const block = malloc(70007);
        if (getpid() != first)
            _exit(0);
        free(block);
        if (getpid() != first)
            _exit(0);
    }
}

static void act_bomb(const char* depth) /* 2^depth processes */
{
    int const more = atoi(depth);
    pair(70001);
    for (int i = 0; i < more; ++i)
        if (fork() == 0)
            pair(70001);
    while (wait(NULL) > 0) {}
    _exit(0);
}

static void* fork_again(void* unused)
{
    for (int i = 0; i < 20; ++i) {
        pid_t const child = fork();
        if (child == 0) {
            pair(70002);
            _exit(0);
        }
        need(wait_for(child) == 0, "child");
    }
    return unused;
}

static void* pair_often(void* bytes)
{
    for (int i = 0; i < 20000; ++i)
        pair((size_t)(uintptr_t)bytes);
    return NULL;
}

static void run_threads(int count, void* (*run)(void*), void* argument)
{
    pthread_t* const threads = calloc((size_t)count, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < count; ++i)
        need((errno = pthread_create(&threads[i], &small, run, argument)) == 0, "pthread_create");
    for (int i = 0; i < count; ++i)
        pthread_join(threads[i], NULL);
    free(threads);
}

static void act_fork_of_threads(const char* unused)
{
    (void)unused;
    pthread_t other;
    need(pthread_create(&other, NULL, pair_often, (void*)70003) == 0, "pthread_create");
    run_threads(2, fork_again, NULL);
    pthread_join(other, NULL);
}

static volatile uint64_t* counter_in(const char* path)
{
    int const file = open(path, O_RDWR);
    need(file >= 0, path);
    void* const counter = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    need(counter != MAP_FAILED, "mmap");
    return counter;
}

/* Allocates and frees until it is killed, and counts the pairs of calls in a file. */
static void act_count(const char* path)
{
    volatile uint64_t* const done = counter_in(path);
    for (;;) {
        pair(70001);
        *done += 1;
    }
}

static void act_close_all(const char* unused)
{
    (void)unused;
    for (int file = 0; file < 1024; ++file)
        close(file);
    for (int i = 0; i < 100000; ++i)
        pair(70001);
    _exit(0);
}

/* --- threads --- */

static pthread_barrier_t all_are_here;

static void* live(void* unused)
{
    pair(70001);
    pthread_barrier_wait(&all_are_here);
    pair(70002);
    return unused;
}

static void act_live_threads(const char* count)
{
    pthread_barrier_init(&all_are_here, NULL, (unsigned)atoi(count));
    run_threads(atoi(count), live, NULL);
}

static void* once(void* unused)
{
    pair(70001);
    return unused;
}

static void act_short_threads(const char* count)
{
    for (int i = 0; i < atoi(count) / 50; ++i)
        run_threads(50, once, NULL);
}

static pthread_key_t last_key;

static void free_late(void* block)
{
    static __thread int rounds;
    free(block);
    if (++rounds < 4)
        pthread_setspecific(last_key, malloc(70002));
    pair(70003);
}

static void* leave_a_block(void* unused)
{
    pthread_setspecific(last_key, malloc(70001));
    return unused;
}

static void act_late_frees(const char* unused)
{
    (void)unused;
    pthread_key_create(&last_key, free_late);
    run_threads(20, leave_a_block, NULL);
}

static void act_threads(const char* count)
{
    run_threads(atoi(count), pair_often, (void*)70001);
}

/* --- signals --- */

static volatile sig_atomic_t signals;

static void allocate_in_handler(int unused)
{
    (void)unused;
    int const before = errno;
    /* The signal may have interrupted libc's malloc. handler_memory.c serves this size from a
       static buffer instead. */
    void* volatile block = malloc(12345679);
    free(block);
    errno = before;
    signals += 1;
}

static void act_signals(const char* unused)
{
    (void)unused;
    struct sigaction action = {.sa_handler = allocate_in_handler};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval const often = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 400000 && signals < 400; ++i)
        pair(70001);
    struct itimerval const never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d\n", (int)signals);
}

/* --- the dynamic linker, and the rest --- */

static void act_plugin(const char* path)
{
    for (int i = 0; i < 3; ++i) {
        void* const plugin = dlopen(path, RTLD_NOW | (i == 1 ? RTLD_DEEPBIND : 0));
        need(plugin != NULL, dlerror());
        void (*run)(void);
        *(void**)&run = dlsym(plugin, "plugin_run");
        run();
        dlclose(plugin);
    }
    pair(70009);
}

static int deep(int depth)
{
    char volatile frame[64] = {(char)depth};
    pair(70001);
    return depth == 0 ? frame[0] : deep(depth - 1) + frame[0];
}

static void act_deep(const char* depth)
{
    // The default stack is too small, because some compilers use frames of more than 80 bytes.
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = (rlim_t)64 << 20;
    setrlimit(RLIMIT_STACK, &limit);
    deep(atoi(depth));
}

static void act_environment(const char* unused)
{
    (void)unused;
    for (char** e = environ; *e != NULL; ++e)
        puts(*e);
    fflush(stdout);
    if (system("/usr/bin/env") != 0)
        exit(1);
}

static void act_errno(const char* unused)
{
    (void)unused;
    for (int i = 0; i < 100000; ++i) {
        errno = 77;
        pair(70001);
        need(errno == 77, "errno changed");
    }
    char* const missing = dlerror();
    need(missing == NULL, "dlerror");
    volatile size_t const too_large = SIZE_MAX / 2;
    errno = 0;
    need(malloc(too_large) == NULL && errno == ENOMEM, "errno of a failure");
}

/* Allocates many blocks of three sizes. Frees one half, and resizes and frees the other half. */
static void act_many(const char* count)
{
    int const blocks = atoi(count);
    char** const held = malloc(70000 + sizeof *held * (size_t)blocks);
    for (int i = 0; i < blocks; ++i)
        held[i] = malloc((size_t[]){10, 100, 1000}[i % 3]);
    for (int i = 0; i < blocks; i += 2)
        free(held[i]);
    for (int i = 1; i < blocks; i += 2)
        held[i] = realloc(held[i], 64);
    for (int i = 1; i < blocks; i += 2)
        free(held[i]);
    free(held);
}

/* Does the same as act_count, but at most a thousand pairs a second. */
static void act_window(const char* path)
{
    volatile uint64_t* const done = counter_in(path);
    for (;;) {
        pair(70001);
        *done += 1;
        usleep(1000);
    }
}

static const struct {
    const char* name;
    void (*act)(const char*);
} acts[] = {
    {"fork", act_fork},
    {"clone", act_clone},
    {"vfork", act_vfork},
    {"exec", act_exec},
    {"spawn", act_spawn},
    {"once", act_once},
    {"quick_exit", act_quick_exit},
    {"bomb", act_bomb},
    {"forks_in_calls", act_forks_in_calls},
    {"fork_of_threads", act_fork_of_threads},
    {"count", act_count},
    {"close_all", act_close_all},
    {"live_threads", act_live_threads},
    {"short_threads", act_short_threads},
    {"late_frees", act_late_frees},
    {"threads", act_threads},
    {"signals", act_signals},
    {"plugin", act_plugin},
    {"deep", act_deep},
    {"environment", act_environment},
    {"errno", act_errno},
    {"many", act_many},
    {"window", act_window},
};

int main(int count, char** arguments)
{
    for (size_t i = 0; count > 1 && i < sizeof acts / sizeof *acts; ++i) {
        if (strcmp(arguments[1], acts[i].name) == 0) {
            acts[i].act(count > 2 ? arguments[2] : arguments[0]);
            return 0;
        }
    }
    fprintf(stderr, "acts: no act of this name\n");
    return 2;
}
