// A library that allocates in the resolver of an indirect function (ifunc) that the library
// defines.
#include <stdlib.h>

static void* kept;

static int two(void)
{
    return 2;
}

static int (*resolve(void))(void)
{
    kept = malloc(100);
    return two;
}

__attribute__((ifunc("resolve"), visibility("hidden"))) int indirect(void);

int use_resolver(void)
{
    free(kept);
    return indirect();
}
