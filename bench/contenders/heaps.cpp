#include <bench/contenders/heaps_of_malloc.hpp>

#include <dlfcn.h>
#include <gnu/libc-version.h>

namespace mallard::bench {
namespace {

template <class F>
F* symbol(void* library, const char* name)
{
    return reinterpret_cast<F*>(dlsym(library, name));
}

} // namespace

heap_functions load_heap(heap_library const& which)
{
    // Uses RTLD_LOCAL, because the library's malloc must not replace the malloc of this program.
    void* const library = dlopen(which.file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const reason = dlerror();
        throw cannot_run(std::string(reason == nullptr ? which.file : reason) +
                         "; help: apt-get install " + which.package +
                         ", and start this by ./x bench");
    }
    return {symbol<void*(std::size_t)>(library, "malloc"), symbol<void(void*)>(library, "free"),
            library};
}

heap_calls load_heap_calls(heap_library const& which, const char* make, const char* allocate,
                           const char* destroy)
{
    void* const library = load_heap(which).library;
    heap_calls const calls{symbol<void*()>(library, make),
                           symbol<void*(void*, std::size_t)>(library, allocate),
                           symbol<void(void*)>(library, destroy)};
    if (calls.make == nullptr || calls.allocate == nullptr || calls.destroy == nullptr)
        throw cannot_run(std::string(which.file) + " has no heaps");
    return calls;
}

std::string heap_name(const char* plain, heap_library const& which)
{
    try {
        return std::string(plain) + "-" + which.version(load_heap(which).library);
    } catch (cannot_run const&) {
        return plain;
    }
}

std::string glibc_version()
{
    return gnu_get_libc_version();
}

std::string mimalloc_version(void* library)
{
    // The number 209 means version 2.0.9.
    int const number = symbol<int()>(library, "mi_version")();
    return std::to_string(number / 100) + "." + std::to_string(number / 10 % 10) + "." +
           std::to_string(number % 10);
}

std::string jemalloc_version(void* library)
{
    const char* text = "";
    std::size_t bytes = sizeof text;
    symbol<int(const char*, void*, std::size_t*, void*, std::size_t)>(library, "mallctl")(
        "version", &text, &bytes, nullptr, 0);
    std::string const version = text; // such as "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c"
    return version.substr(0, version.find_first_of("-_"));
}

std::string gperftools_version(void* library)
{
    int major = 0;
    int minor = 0;
    const char* patch = nullptr;
    symbol<const char*(int*, int*, const char**)>(library, "tc_version")(&major, &minor, &patch);
    return std::to_string(major) + "." + std::to_string(minor);
}

} // namespace mallard::bench
