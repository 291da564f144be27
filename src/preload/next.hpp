// The next allocator, that is, the functions that a program would call without the preloaded
// library. The hooks of the library call these functions.
#pragma once

#include <cstddef>

namespace mallard::preload {

/// The functions of the next allocator. Until `find_next` has run, they are null, except for
/// `free`, which then calls `find_next`.
struct next_functions {
    void* (*malloc)(std::size_t);
    void (*free)(void*);
    void* (*calloc)(std::size_t, std::size_t);
    void* (*realloc)(void*, std::size_t);
    void* (*reallocarray)(void*, std::size_t, std::size_t); ///< null in glibc before 2.26
    void* (*aligned_alloc)(std::size_t, std::size_t);
    void* (*memalign)(std::size_t, std::size_t);
    int (*posix_memalign)(void**, std::size_t, std::size_t);
    void* (*valloc)(std::size_t);
    void* (*pvalloc)(std::size_t);
    std::size_t (*malloc_usable_size)(void*);
    void (*free_sized)(void*, std::size_t);                      ///< null if libc has none
    void (*free_aligned_sized)(void*, std::size_t, std::size_t); ///< null if libc has none
    void* (*dlopen)(const char*, int);
    int (*dlclose)(void*);
};

[[gnu::visibility("hidden")]] extern constinit next_functions next;

/// Finds the next definition of a name. If `find_definition` is null, dlsym(RTLD_NEXT) is used. A
/// library that is loaded into a running program sets `find_definition`, because no library comes
/// after this library in the search order.
using definition_finder = void* (*)(const char*) noexcept;
[[gnu::visibility("hidden")]] extern constinit definition_finder find_definition;

/// Looks up the functions of `next`, unless they are known already. Returns false if this thread is
/// already in this look-up, which has called a hook of the library. The hook must then use
/// `bootstrap`.
bool find_next() noexcept;

/// Serves the requests of the dynamic linker during `find_next`. The blocks are zeroed, and are
/// never reused.
void* bootstrap(std::size_t bytes, std::size_t align = 16) noexcept;

constexpr std::size_t bootstrap_bytes = 16384;
[[gnu::visibility("hidden")]] extern constinit std::byte bootstrap_memory[bootstrap_bytes];

/// Returns whether `block` was allocated by `bootstrap`.
inline bool is_bootstrap(const void* block) noexcept
{
    auto const* const at = static_cast<const std::byte*>(block);
    // One comparison is enough, because for a lower address, the difference is a large unsigned
    // number.
    return static_cast<std::size_t>(at - bootstrap_memory) < bootstrap_bytes;
}

/// Returns how many bytes can be read from a block of `bootstrap` to the end of the bootstrap
/// memory. The size of such a block is not stored.
inline std::size_t bootstrap_left(const void* block) noexcept
{
    return static_cast<std::size_t>(bootstrap_memory + bootstrap_bytes -
                                    static_cast<const std::byte*>(block));
}

} // namespace mallard::preload
