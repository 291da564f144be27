/* Prints the resident memory in KiB of 1,000 threads that have allocated and freed blocks of many
   sizes, and sleep. With an argument, another thread calls malloc_trim before the memory is
   printed. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { threads = 1000, rounds = 3, small = 256, large = 32 };

static pthread_barrier_t all_have_freed, all_may_go;

static void work(void)
{
    void* blocks[small];
    size_t bytes;
    int i;
    for (bytes = 16; bytes <= 32768; bytes *= 2) {
        int const count = bytes <= 4096 ? small : large;
        for (i = 0; i < count; ++i) {
            blocks[i] = malloc(bytes);
            memset(blocks[i], 1, bytes);
        }
        for (i = 0; i < count; ++i)
            free(blocks[i]);
    }
}

static void* work_and_sleep(void* unused)
{
    int round;
    (void)unused;
    for (round = 0; round < rounds; ++round)
        work();
    pthread_barrier_wait(&all_have_freed);
    pthread_barrier_wait(&all_may_go);
    work(); /* the thread must still be able to allocate and free */
    return NULL;
}

static long resident_kib(void)
{
    long total = 0, resident = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
        _exit(1);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int count, char** words)
{
    static pthread_t started[threads];
    long before, resident;
    int i;
    pthread_attr_t stack;
    (void)words;
    pthread_attr_init(&stack);
    pthread_attr_setstacksize(&stack, 64 * 1024);
    pthread_barrier_init(&all_have_freed, NULL, threads + 1);
    pthread_barrier_init(&all_may_go, NULL, threads + 1);
    before = resident_kib();
    for (i = 0; i < threads; ++i)
        if (pthread_create(&started[i], &stack, work_and_sleep, NULL) != 0) {
            fprintf(stderr, "%d threads is all this system allows\n", i);
            _exit(77);
        }
    pthread_barrier_wait(&all_have_freed);
    if (count > 1)
        malloc_trim(0);
    resident = resident_kib() - before;
    pthread_barrier_wait(&all_may_go);
    for (i = 0; i < threads; ++i)
        pthread_join(started[i], NULL);
    printf("%ld\n", resident);
    return 0;
}
