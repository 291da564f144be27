/* Loads and unloads a plugin that allocates, 300 times. Checks that no memory stays behind. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long resident_pages(void)
{
    long total = 0, resident = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
        abort();
    fclose(file);
    return resident;
}

int main(int count, char** arguments)
{
    void* kept[300];
    long early = 0;
    int i;
    for (i = 0; i < 300; ++i) {
        void* (*use_plugin)(void*);
        void* plugin = dlopen(arguments[count - 1], RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        use_plugin = (void* (*)(void*))dlsym(plugin, "use_plugin");
        if (use_plugin == NULL)
            return 1;
        kept[i] = use_plugin(malloc(100)); /* a block of the plugin, which frees the argument */
        dlclose(plugin);
        if (i == 30)
            early = resident_pages();
    }
    for (i = 0; i < 300; ++i)
        free(kept[i]);
    if (resident_pages() > early + 1024) {
        fprintf(stderr, "broken: %ld pages, and early on %ld\n", resident_pages(), early);
        return 1;
    }
    return 0;
}
