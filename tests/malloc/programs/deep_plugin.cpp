// Loads a plugin with RTLD_DEEPBIND and exchanges blocks with it, as Debian's PHP does with its
// extensions. `deep_plugin NAME`
//
// The name has no directory. The loader finds the plugin by this program's DT_RUNPATH, which it
// uses only if it sees this program as the caller of dlopen.
#include "../family.hpp"
#include "check.hpp"

#include <cstdio>
#include <cstring>

#include <dlfcn.h>

int main(int count, char** arguments)
{
    using namespace mallard::testing;
    check(count == 2 && std::strchr(arguments[1], '/') == nullptr, "a plugin is named");
    for (int i = 0; i < 3; ++i) {
        void* const plugin = ::dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
        if (plugin == nullptr)
            std::fprintf(stderr, "%s\n", ::dlerror());
        check(plugin != nullptr, "the plugin is found");
        auto const exchange =
            reinterpret_cast<void* (*)(void*)>(::dlsym(plugin, "exchange_blocks"));
        check(exchange != nullptr, "the plugin has its function");
        std::free(exchange(hidden(std::malloc(1000))));
        check(::dlclose(plugin) == 0, "the plugin is unloaded");
    }
}
