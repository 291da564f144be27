// Helpers of the tests of malloc: facts about the process.
#pragma once

#include "../support/resident.hpp"
#include "family.hpp"

#include <cstdio>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

namespace mallard::testing {

/// Returns the path of the file that defines a symbol, or an empty text if no file does.
inline std::string file_of(const char* symbol)
{
    Dl_info info;
    void* const address = ::dlsym(RTLD_DEFAULT, symbol);
    return address != nullptr && ::dladdr(address, &info) != 0 ? info.dli_fname : "";
}

/// Returns whether the program runs with a malloc other than that of the C library. The C library's
/// malloc is the control: if it fails a test, the test is wrong, or stricter than the standard.
inline bool is_preloaded()
{
    return file_of("malloc") != file_of("printf");
}

/// Looks up a function that not every malloc has. Returns null if the function is missing.
template <class F>
F* find(const char* symbol)
{
    return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, symbol));
}

} // namespace mallard::testing
