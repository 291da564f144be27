/* growing [forever]: allocates blocks, keeps some of them, and prints "ready". Exits with status 3 when its
   input ends, or with `forever` only by a signal. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEPT_MAX = 100000 };
static void* volatile kept[KEPT_MAX];

__attribute__((noinline)) void* keep_orders(void)
{
    void* volatile block = malloc(1000);
    return block;
}

__attribute__((noinline)) void churn(void)
{
    for (int i = 0; i < 200; ++i) {
        void* volatile block = malloc(50 + (size_t)i);
        free(block);
    }
}

int main(int argc, char** argv)
{
    (void)argv;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    puts("ready");
    fflush(stdout);
    for (int i = 0;; ++i) {
        if (i < KEPT_MAX)
            kept[i] = keep_orders();
        churn();
        if (argc > 1)
            usleep(1000);
        else if (poll(&input, 1, 1) > 0)
            return 3;
    }
}
