// Reads from the environment where the ring is, and changes the environment that child processes
// inherit.
#include "process.hpp"

#include <cstring>

#include <unistd.h>

extern "C" {
extern void* __libc_stack_end; // defined by glibc; points to argc, argv, null, environment
}

namespace mallard::record {

namespace {

constexpr char ring_name[] = "MALLARD_RING=";
constexpr char preload_name[] = "LD_PRELOAD=";
constexpr char library_name[] = "/libmallard-record.so";

/// Returns the environment that the kernel passed. `environ` cannot be used, because it is null
/// until libc is initialised, and the first hook may run earlier.
char** first_environment() noexcept
{
    auto* const start = static_cast<char**>(__libc_stack_end);
    auto const arguments = reinterpret_cast<std::uintptr_t>(start[0]);
    return start + 1 + arguments + 1;
}

bool begins_with(const char* text, const char* start) noexcept
{
    return std::strncmp(text, start, std::strlen(start)) == 0;
}

void remove(char** variable) noexcept
{
    do
        variable[0] = variable[1];
    while (*variable++ != nullptr);
}

/// Removes the recorder's entry from the value of LD_PRELOAD. Returns false if the value is empty
/// now.
bool remove_from_preload(char* value) noexcept
{
    char* const library = std::strstr(value, library_name);
    if (library == nullptr)
        return true;
    char* start = library;
    while (start != value && std::strchr(" :", start[-1]) == nullptr)
        start -= 1;
    char* const end = start + std::strcspn(start, " :");
    std::memmove(start, *end == '\0' ? end : end + 1, std::strlen(end) + (*end == '\0'));
    return *value != '\0';
}

} // namespace

char* find_ring_variable() noexcept
{
    for (char** v = first_environment(); *v != nullptr; ++v)
        if (begins_with(*v, ring_name))
            return *v + std::strlen(ring_name);
    return nullptr;
}

void clear_environment() noexcept
{
    for (char** v = first_environment(); *v != nullptr;) {
        bool const is_empty =
            begins_with(*v, ring_name) ||
            (begins_with(*v, preload_name) && !remove_from_preload(*v + std::strlen(preload_name)));
        if (is_empty)
            remove(v);
        else
            ++v;
    }
}

} // namespace mallard::record
