// How options are read before the C library knows its environment.
#pragma once

#include <cstring>

#include <sys/auxv.h>

namespace mallard {

/// Null: it says nothing, or this program has rights that its user has not.
inline const char* value_of(const char* name, char** environment) noexcept
{
    if (::getauxval(AT_SECURE) != 0)
        return nullptr;
    std::size_t const length = std::strlen(name);
    for (; environment != nullptr && *environment != nullptr; ++environment)
        if (std::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return nullptr;
}

} // namespace mallard
