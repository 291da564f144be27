/* A C program with a plugin in C++. It calls the function `work` of the plugin 300 times. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** arguments)
{
    if (count != 2)
        return 2;
    void* const plugin = dlopen(arguments[1], RTLD_NOW);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    long (*work)(int);
    *(void**)&work = dlsym(plugin, "work");
    long sum = 0;
    for (int i = 0; i < 300; ++i)
        sum += work(i);
    return sum > 0 ? 0 : 1;
}
