#include "failure.hpp"

#include "../os/system.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include <unistd.h>

namespace mallard::replay {

void fail(status with, const char* state, const char* help, const char* format, ...) noexcept
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);

    char text[1536];
    std::snprintf(text, sizeof text, "mallard-replay: %s\n  %s\n  help: %s\n", what, state, help);
    os::write_error(text, std::strlen(text));
    ::_exit(with);
}

} // namespace mallard::replay
