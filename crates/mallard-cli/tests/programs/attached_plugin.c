/* A plugin that allocates, and does not free what it has allocated. */
#include <stdlib.h>

static void* volatile kept[10];

__attribute__((noinline)) void plugin_allocates(void)
{
    for (int i = 0; i < 10; ++i)
        kept[i] = malloc(7777);
}
