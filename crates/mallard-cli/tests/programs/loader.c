/* Loads the plugin that the argument names, five times in the usual way, and then with
 * RTLD_DEEPBIND. Frees the blocks of the plugin. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int load(const char* path, int flags)
{
    void* const plugin = dlopen(path, RTLD_NOW | flags);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void* (*make)(void);
    *(void**)&make = dlsym(plugin, "make");
    for (int i = 0; i < 100; ++i)
        free(make());
    return dlclose(plugin);
}

int main(int count, char** arguments)
{
    if (count != 2)
        return 2;
    for (int i = 0; i < 5; ++i)
        if (load(arguments[1], 0) != 0)
            return 1;
    return load(arguments[1], RTLD_DEEPBIND);
}
