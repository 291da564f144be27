/* A malloc, preloaded after the recorder, that forks inside of malloc(70007) and inside of the
 * free of such a block, as a signal handler could. The child returns from the call. The parent
 * aborts if the child did not exit with 0. */
#include <malloc.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern void* __libc_malloc(size_t bytes); /* NOLINT(bugprone-reserved-identifier) */
extern void __libc_free(void* block);     /* NOLINT(bugprone-reserved-identifier) */

static void fork_here(void)
{
    pid_t const child = fork();
    int status = 0;
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
        abort();
}

void* malloc(size_t bytes)
{
    if (bytes == 70007)
        fork_here();
    return __libc_malloc(bytes);
}

void free(void* block)
{
    if (block != NULL && malloc_usable_size(block) == 70008)
        fork_here();
    __libc_free(block);
}
