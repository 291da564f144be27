/* Switches between two fibers, each with a separate stack. Then leaves 1,000 frames by longjmp. */
#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>

static ucontext_t caller, fibers[2];
static jmp_buf out;

static void pair(size_t bytes)
{
    void* volatile block = malloc(bytes);
    free(block);
}

static void run(int self)
{
    for (int i = 0; i < 500; ++i) {
        pair(70001);
        swapcontext(&fibers[self], &fibers[1 - self]);
        pair(70002);
    }
}

static void dive(int depth)
{
    pair(70003);
    if (depth == 0)
        longjmp(out, 1);
    dive(depth - 1);
    pair(1); /* never reached */
}

int main(void)
{
    for (int i = 0; i < 2; ++i) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_size = 1 << 16;
        fibers[i].uc_stack.ss_sp = malloc(1 << 16);
        fibers[i].uc_link = &caller;
        makecontext(&fibers[i], (void (*)(void))run, 1, i);
    }
    swapcontext(&caller, &fibers[0]);
    for (int i = 0; i < 10; ++i) {
        if (setjmp(out) == 0)
            dive(99);
        pair(70004);
    }
    return 0;
}
