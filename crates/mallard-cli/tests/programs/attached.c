/* attached THREADS PLUGIN: a program that allocates in threads until its input has the line `end`.
   It prints "ready", and then executes each line of its input:
     entries    prints a checksum of the GOT entries for malloc's family, for each module
     plugin     loads the plugin, which allocates
     fork       starts a process that allocates, and prints its status
     exec       executes the program again, without threads
     end        ends the threads, and prints how many of their checks failed */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT = 64, THREADS_MAX = 64 };

static atomic_int is_over;
static atomic_int busy; /* threads that have called each function */
static atomic_long failed;
static void* kept[THREADS_MAX][KEPT];

__attribute__((noinline)) void* grow_in_worker(size_t bytes)
{
    void* volatile block = malloc(bytes);
    return block;
}

static void check(unsigned char* block, size_t bytes, unsigned char expected)
{
    for (size_t i = 0; i < bytes; ++i)
        if (block[i] != expected)
            atomic_fetch_add(&failed, 1);
}

static void* work(void* argument)
{
    size_t const number = (size_t)argument;
    for (size_t turn = 0; !atomic_load(&is_over); ++turn) {
        size_t const bytes = 16 + turn % 200;
        unsigned char* block = grow_in_worker(bytes);
        memset(block, (int)turn, bytes);
        block = realloc(block, 2 * bytes);
        check(block, bytes, (unsigned char)turn);
        void** const at = &kept[number][turn % KEPT];
        free(*at);
        *at = block;
        free(calloc(3, bytes));
        if (turn == 0)
            atomic_fetch_add(&busy, 1);
        if (turn % 4 == 0)
            usleep(4000);
    }
    return NULL;
}

static const char* const family[] = {"malloc", "free", "calloc", "realloc", "valloc", "dlopen", "dlclose"};

static int is_of_family(const char* name)
{
    for (size_t i = 0; i < sizeof family / sizeof *family; ++i)
        if (strcmp(name, family[i]) == 0)
            return 1;
    return 0;
}

static int print_entries(struct dl_phdr_info* info, size_t bytes, void* unused)
{
    (void)bytes, (void)unused;
    ElfW(Dyn) const* dynamic = NULL;
    for (int i = 0; i < info->dlpi_phnum; ++i)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (void const*)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (dynamic == NULL || strstr(info->dlpi_name, "mallard") != NULL || strstr(info->dlpi_name, "/proc/") != NULL)
        return 0;
    uintptr_t values[DT_NUM] = {0};
    for (; dynamic->d_tag != DT_NULL; ++dynamic)
        if (dynamic->d_tag < DT_NUM)
            values[dynamic->d_tag] = dynamic->d_un.d_val;
    ElfW(Sym) const* const symbols = (void const*)values[DT_SYMTAB];
    char const* const strings = (char const*)values[DT_STRTAB];
    uint64_t sum = 0;
    int count = 0;
    int const tables[2][2] = {{DT_JMPREL, DT_PLTRELSZ}, {DT_RELA, DT_RELASZ}};
    for (int t = 0; t < 2; ++t) {
        ElfW(Rela) const* const relocations = (void const*)values[tables[t][0]];
        for (size_t i = 0; i < values[tables[t][1]] / sizeof *relocations; ++i) {
            ElfW(Rela) const* const r = &relocations[i];
            if (ELF64_R_SYM(r->r_info) == 0 || !is_of_family(strings + symbols[ELF64_R_SYM(r->r_info)].st_name))
                continue;
            uint64_t value;
            memcpy(&value, (void const*)(info->dlpi_addr + r->r_offset), sizeof value);
            sum = (sum ^ value) * 0x100000001b3u + r->r_offset;
            count += 1;
        }
    }
    printf("%s=%d:%llx ", *info->dlpi_name == '\0' ? "program" : info->dlpi_name, count, (unsigned long long)sum);
    return 0;
}

static void fork_child(void)
{
    int status = 0;
    pid_t const child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; ++i)
            free(grow_in_worker(4000));
        _exit(5);
    }
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

int main(int count, char** arguments)
{
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* for Yama's ptrace_scope 1 */
    pthread_t threads[THREADS_MAX];
    size_t const thread_count = strtoul(arguments[1], NULL, 10);
    char line[64];
    void* (*volatile pointer)(size_t) = malloc; /* an entry that is no call */
    free(pointer(10));
    if (count > 9)
        free(valloc(1)); /* an entry that is never bound, unless all are bound at the start */
    setvbuf(stdout, NULL, _IOLBF, 4096);
    for (size_t i = 0; i < thread_count; ++i)
        pthread_create(&threads[i], NULL, work, (void*)i);
    while ((size_t)atomic_load(&busy) < thread_count)
        usleep(100);
    printf("ready\n");
    while (fgets(line, sizeof line, stdin) != NULL && strcmp(line, "end\n") != 0) {
        if (strcmp(line, "entries\n") == 0) {
            dl_iterate_phdr(print_entries, NULL);
            printf("\n");
        } else if (strcmp(line, "plugin\n") == 0) {
            void* const plugin = dlopen(arguments[2], RTLD_NOW);
            void (*const run)(void) = plugin == NULL ? NULL : (void (*)(void))dlsym(plugin, "plugin_allocates");
            if (run != NULL)
                run();
            printf("plugin %s\n", run != NULL ? "ran" : dlerror());
        } else if (strcmp(line, "fork\n") == 0) {
            fork_child();
        } else if (strcmp(line, "exec\n") == 0) {
            execl("/proc/self/exe", arguments[0], "0", arguments[2], (char*)NULL);
        }
    }
    atomic_store(&is_over, 1);
    for (size_t i = 0; i < thread_count; ++i)
        pthread_join(threads[i], NULL);
    printf("failed %ld\n", atomic_load(&failed));
    return 3;
}
