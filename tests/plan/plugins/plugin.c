/* A plugin that allocates when it is loaded, used and unloaded. libplan-twin.so, a second
   plugin, has the same layout. */
#include <stdlib.h>

void* plugin_make(size_t bytes);
void plugin_destroy(void* block);

const char plugin_name[] = NAME;

__attribute__((noinline)) void* plugin_make(size_t bytes)
{
    void* volatile block = malloc(bytes);
    return block;
}
__attribute__((noinline)) void plugin_destroy(void* block)
{
    free(block);
}
static __attribute__((constructor)) void load(void)
{
    plugin_destroy(plugin_make(100));
}
static __attribute__((destructor)) void unload(void)
{
    plugin_destroy(plugin_make(100));
}
