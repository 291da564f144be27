/* Has a function whose calls are served by a local allocator, and other code that allocates by
 * the same functions. Prints nothing, because the library reports how many blocks the rule has
 * served. `region PREFIX...` makes 100 calls. */
#include <alloca.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static volatile size_t size = 32;
static jmp_buf out;

__attribute__((noinline)) void* make(size_t bytes)
{
    return malloc(bytes);
}

/* Moves the stack pointer down, so that earlier contents of the stack are not overwritten. */
__attribute__((noinline)) void* make_deep(int depth, size_t bytes)
{
    char volatile* const room = alloca(64 + 48 * (size_t)depth);
    room[0] = 1;
    return depth == 0 ? make(bytes) : make_deep(depth - 1, bytes);
}

__attribute__((noinline)) void use(int number)
{
    free(make(size));
    free(make_deep(number % 5, size));
}

/* Allocates two blocks in each of ten rounds. Every fourth call allocates two more,
 * through a pointer to `use`. */
__attribute__((noinline)) void region(int number)
{
    for (int i = 0; i < 10; ++i)
        use(number + i);
    if (number % 4 == 0) {
        void (*volatile again)(int) = use;
        again(number);
    }
    if (number % 10 == 9)
        longjmp(out, 1);
}

__attribute__((noinline)) void other(int number)
{
    for (int i = 0; i < 10; ++i)
        use(number + i);
}

int main(void)
{
    for (volatile int i = 0; i < 100; ++i) {
        if (setjmp(out) == 0)
            region(i);
        other(i);
        free(make(size));
        free(make_deep(i % 3, size));
    }
    return 0;
}
