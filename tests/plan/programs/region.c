/* A function whose calls have a local allocator, beside code that allocates by the same functions.
 * Prints nothing; the library says how many blocks the rule has served. `region PREFIX...` makes
 * 100 calls. */
#include <alloca.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* A function whose callers know nothing of its code. clang has no `noipa`, and changes no function
 * that other files may call. */
#ifdef __clang__
#define opaque __attribute__((noinline))
#else
#define opaque __attribute__((noipa))
#endif

static volatile size_t size = 32;
static jmp_buf out;

opaque void* make(size_t bytes)
{
    return malloc(bytes);
}

/* Moves the stack, so that what lay there stays. */
opaque void* make_deep(int depth, size_t bytes)
{
    char volatile* const room = alloca(64 + 48 * (size_t)depth);
    room[0] = 1;
    return depth == 0 ? make(bytes) : make_deep(depth - 1, bytes);
}

opaque void use(int number)
{
    free(make(size));
    free(make_deep(number % 5, size));
}

/* Two blocks in each of ten rounds. A recursive call adds two. */
opaque void region(int number)
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

opaque void other(int number)
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
