// Allocates before main, and after main in destructors and at thread exit.
#include <cstdlib>
#include <new>
#include <thread>

#include <dlfcn.h>

namespace {

[[gnu::constructor(101)]] void first()
{
    std::free(std::malloc(70001));
    if (const char* const plugin = std::getenv("PLUGIN"))
        if (void* const loaded = ::dlopen(plugin, RTLD_NOW))
            reinterpret_cast<void (*)()>(::dlsym(loaded, "plugin_run"))();
}
[[gnu::destructor(101)]] void last()
{
    std::free(std::malloc(70002));
}

struct of_thread {
    void* block = ::operator new(70003);
    ~of_thread() { ::operator delete(block, 70003); }
};
thread_local of_thread mine;

} // namespace

int main()
{
    std::thread([] { [[maybe_unused]] void* volatile const block = mine.block; }).join();
}
