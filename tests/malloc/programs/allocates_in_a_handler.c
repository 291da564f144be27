/* A signal handler that allocates, a thousand times a second, while the program does: it
 * interrupts malloc sooner or later, and waits for it forever if malloc is behind a lock. */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;

static void tick(int signal)
{
    void* volatile block = malloc((size_t)signal);
    free(block);
    ++ticks;
}

int main(void)
{
    struct itimerval each = {{0, 1000}, {0, 1000}};
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &each, NULL);
    while (ticks < 5000) {
        void* volatile block = malloc(100);
        free(block);
    }
    return 0;
}
