// What tests of a malloc ask about the process they are in.
#pragma once

#include "family.hpp"

#include <cstdio>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

namespace mallard::testing {

/// The file that has a symbol; empty when none has.
inline std::string file_of(const char* symbol)
{
    Dl_info info;
    void* const address = ::dlsym(RTLD_DEFAULT, symbol);
    return address != nullptr && ::dladdr(address, &info) != 0 ? info.dli_fname : "";
}

/// Whether it is not the C library's own malloc that is tested. That one is the
/// control: what it fails is a wrong test, or a rule of our own.
inline bool is_preloaded()
{
    return file_of("malloc") != file_of("printf");
}

/// A function that not every malloc has; null without it.
template <class F>
F* find(const char* symbol)
{
    return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, symbol));
}

/// Of this process, in bytes.
inline std::size_t resident_bytes()
{
    char text[128] = "";
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    std::size_t total = 0, resident = 0;
    if (file != nullptr && std::fgets(text, sizeof text, file) != nullptr)
        std::sscanf(text, "%zu %zu", &total, &resident);
    if (file != nullptr)
        std::fclose(file);
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace mallard::testing
