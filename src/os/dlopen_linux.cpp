// Replaces dlopen and removes RTLD_DEEPBIND, for libraries that replace or record malloc.
//
// A plugin that is loaded with RTLD_DEEPBIND finds functions in its own dependencies first. So the
// plugin calls the malloc of the C library, while the program calls the malloc that replaces it. If
// the plugin or the program frees a block that the other has allocated, the process crashes.
#include <atomic>

#include <dlfcn.h>

// The C library declares this function with other parameter names.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" [[gnu::visibility("default")]] void* dlopen(const char* file, int flags) noexcept
{
    using function = void* (*)(const char*, int);
    constinit static std::atomic<function> next{nullptr};
    function call = next.load(std::memory_order_relaxed);
    if (call == nullptr) {
        call = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "dlopen"));
        next.store(call, std::memory_order_relaxed);
    }
    // The compiler translates this call into a jump. So the C library reads the return address of
    // the program, and searches the directories (DT_RUNPATH) of the file that has called dlopen.
    return call(file, flags & ~RTLD_DEEPBIND);
}
