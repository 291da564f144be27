// Helpers of the tests of malloc: facts about the process.
#pragma once

#include "family.hpp"

#include <cstdio>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

namespace mallard::testing {

/// The file that defines a symbol; empty if no file does.
inline std::string file_of(const char* symbol)
{
    Dl_info info;
    void* const address = ::dlsym(RTLD_DEFAULT, symbol);
    return address != nullptr && ::dladdr(address, &info) != 0 ? info.dli_fname : "";
}

/// Whether the program runs with a malloc other than that of the C library. The C library's malloc
/// is the control: if it fails a test, the test is wrong, or stricter than the standard.
inline bool is_preloaded()
{
    return file_of("malloc") != file_of("printf");
}

/// Looks up a function that not every malloc has; null if the function is missing.
template <class F>
F* find(const char* symbol)
{
    return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, symbol));
}

/// The resident memory of this process in bytes.
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
