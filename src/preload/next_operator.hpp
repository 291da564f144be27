// Finds the operators new and delete that a program would call without the preloaded library.
#pragma once

#include "next.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <type_traits>

#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

namespace mallard::preload {

enum form { new_one, new_array, delete_one, delete_array };
inline constexpr const char* prefix_of[] = {"_Znwm", "_Znam", "_ZdlPv", "_ZdaPv"};

/// The end of an operator's mangled name, which encodes the arguments after the first.
template <class... More>
constexpr const char* suffix_of = "";
template <>
inline constexpr const char* suffix_of<std::size_t> = "m";
template <>
inline constexpr const char* suffix_of<std::align_val_t> = "St11align_val_t";
template <>
inline constexpr const char* suffix_of<std::size_t, std::align_val_t> = "mSt11align_val_t";
template <>
inline constexpr const char* suffix_of<const std::nothrow_t&> = "RKSt9nothrow_t";
template <>
inline constexpr const char* suffix_of<std::align_val_t, const std::nothrow_t&> =
    "St11align_val_tRKSt9nothrow_t";

template <class... More>
constexpr bool is_nothrow = (std::is_same_v<More, const std::nothrow_t&> || ...);

// The functions below return the size, or the logarithm of the alignment, that an operator receives
// after its first argument. The result is 0 if there is no such argument.

constexpr std::size_t bytes_of() noexcept
{
    return 0;
}
constexpr std::size_t bytes_of(std::size_t bytes, auto const&...) noexcept
{
    return bytes;
}
constexpr std::size_t bytes_of(auto const&...) noexcept
{
    return 0;
}

constexpr unsigned log2_of(std::align_val_t align) noexcept
{
    return static_cast<unsigned>(std::countr_zero(static_cast<std::size_t>(align))) & 63;
}
template <class Other>
constexpr unsigned log2_of(const Other&) noexcept
{
    return 0;
}
constexpr unsigned align_log2_of(auto const&... more) noexcept
{
    return (0U | ... | log2_of(more));
}

/// Looks up the next function of this name. Also searches the C++ runtimes that are loaded, because
/// RTLD_NEXT does not find a runtime that a plugin has loaded.
inline void* find_by_name(const char* name) noexcept
{
    if (void* const found =
            find_definition == nullptr ? ::dlsym(RTLD_NEXT, name) : find_definition(name))
        return found;
    for (const char* const runtime : {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"})
        if (void* const loaded = ::dlopen(runtime, RTLD_LAZY | RTLD_NOLOAD))
            if (void* const found = ::dlsym(loaded, name))
                return found;
    return nullptr;
}

/// Looks up the next operator of a form. Returns null if the process has no C++ runtime. During the
/// look-up, the dynamic linker may allocate.
template <form Form, class... More>
[[gnu::noinline]] void* find_operator() noexcept
{
    char name[48]{};
    std::size_t const bytes = std::strlen(prefix_of[Form]);
    std::memcpy(name, prefix_of[Form], bytes);
    std::memcpy(name + bytes, suffix_of<More...>, std::strlen(suffix_of<More...>));
    return find_by_name(name);
}

/// Returns whether a function belongs to a C++ runtime, whose operators call malloc and free.
inline bool calls_malloc(const void* function) noexcept
{
    Dl_info info{};
    if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr)
        return false;
    const char* const slash = std::strrchr(info.dli_fname, '/');
    const char* const file = slash == nullptr ? info.dli_fname : slash + 1;
    return std::strncmp(file, "libstdc++", 9) == 0 || std::strncmp(file, "libc++", 6) == 0;
}

[[noreturn]] inline void stop_without_runtime() noexcept
{
    static constexpr char text[] = "mallard: out of memory in operator new, without a C++ runtime\n"
                                   "  std::bad_alloc cannot be thrown, and the program stops\n"
                                   "  help: link the program with libstdc++\n";
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, text, sizeof text - 1);
    std::abort();
}

/// Allocates like an operator new, in a process without a C++ runtime.
template <class... More>
void* allocate_without_runtime(std::size_t bytes, More... more) noexcept
{
    unsigned const align_log2 = align_log2_of(more...);
    void* const block =
        align_log2 == 0 ? ::malloc(bytes) : ::memalign(std::size_t{1} << align_log2, bytes);
    if (block == nullptr && !is_nothrow<More...>)
        stop_without_runtime();
    return block;
}

} // namespace mallard::preload
