/* A C program with a plugin that loads the C++ runtime. From then on operator new can throw. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** arguments)
{
    int (*use_new)(void);
    void* volatile block = malloc(100);
    void* plugin = dlopen(arguments[count - 1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    free(block);
    use_new = (int (*)(void))dlsym(plugin, "use_new");
    return use_new == NULL ? 1 : use_new();
}
