/* Prints the resident memory in KiB of 2,000 threads with one block each. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { threads = 2000 };

static pthread_barrier_t all_have_one, all_may_go;

static void* have_a_block(void* unused)
{
    void* volatile block = malloc(100);
    (void)unused;
    pthread_barrier_wait(&all_have_one);
    pthread_barrier_wait(&all_may_go);
    free(block);
    return NULL;
}

int main(void)
{
    static pthread_t started[threads];
    long total = 0, resident = 0;
    FILE* file;
    int i;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&all_have_one, NULL, threads + 1);
    pthread_barrier_init(&all_may_go, NULL, threads + 1);
    for (i = 0; i < threads; ++i)
        if (pthread_create(&started[i], &small, have_a_block, NULL) != 0) {
            fprintf(stderr, "%d threads is all this system allows\n", i);
            _exit(77);
        }
    pthread_barrier_wait(&all_have_one);
    file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
        return 1;
    fclose(file);
    pthread_barrier_wait(&all_may_go);
    for (i = 0; i < threads; ++i)
        pthread_join(started[i], NULL);
    printf("%ld\n", resident * (sysconf(_SC_PAGESIZE) / 1024));
    return 0;
}
