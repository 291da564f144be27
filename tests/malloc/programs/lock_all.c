/* Calls mlockall as the user nobody, who usually may lock no more than 8 MiB. Address space that
   malloc only reserves would count, too. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void* allocate_some(void* ignored)
{
    (void)ignored;
    for (size_t bytes = 1; bytes < 400 * 1000; bytes = bytes * 3 + 1) {
        void* const block = malloc(bytes);
        if (block == NULL) {
            perror("malloc");
            _exit(1);
        }
        memset(block, 1, bytes);
        free(block);
    }
    return NULL;
}

int main(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur < 8 << 20 || limit.rlim_cur > (rlim_t)1 << 30)
        return 77;
    allocate_some(NULL);
    if (geteuid() == 0 && setuid(65534) != 0)
        return 77;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        perror("mlockall");
        return 1;
    }
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    pthread_t thread;
    errno = pthread_create(&thread, &small, allocate_some, NULL);
    if (errno != 0) {
        perror("pthread_create");
        return 1;
    }
    pthread_join(thread, NULL);
    allocate_some(NULL);
    return 0;
}
