/* A plugin that allocates when it is loaded, used and unloaded. */
#include <stdlib.h>

void plugin_run(void);

static __attribute__((constructor)) void load(void)
{
    void* volatile block = malloc(70011);
    free(block);
}
static __attribute__((destructor)) void unload(void)
{
    void* volatile block = malloc(70013);
    free(block);
}
__attribute__((noinline)) void plugin_run(void)
{
    void* volatile block = malloc(70012);
    free(block);
}
