/* Allocates in a signal handler a thousand times a second, and in the main program. Sooner or
 * later, the handler interrupts malloc. If malloc uses a lock, the handler then waits for that
 * lock forever. */
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
