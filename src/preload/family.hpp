// malloc and related functions, for a library that is preloaded. One source file of each such
// library includes this header, after that file has defined `mallard::preload::hooks`:
//
//     allocate(op, bytes, align_log2, real)            called by each function that allocates
//     deallocate(op, block, bytes, align_log2, real)   called by each function that frees
//     reallocate(block, bytes, real)
//     log2_of(align)                                   for the functions with an alignment
//     after_dlclose()
//
// `op` is one of mallard_trace_op. `real` makes the call that the program would make without the
// library. The hooks read the return address, or the stack frame, of the function that the program
// has called. So the functions below must call the hooks directly, and the hooks must be inlined or
// reached by a jump.
#pragma once

#include "next.hpp"

#include <mallard/trace/trace_format.h>

#include <cerrno>
#include <cstdint>

#include <dlfcn.h>

namespace mallard::preload {

/// Returns the product of two sizes, or SIZE_MAX if the product overflows.
inline std::size_t product(std::size_t a, std::size_t b) noexcept
{
    std::size_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? SIZE_MAX : result;
}

constexpr unsigned page_log2 = 12;

} // namespace mallard::preload

#pragma GCC visibility push(default)

extern "C" {

void* malloc(std::size_t bytes)
{
    using namespace mallard::preload;
    return hooks::allocate(mallard_trace_malloc, bytes, 0, [=] { return next.malloc(bytes); });
}

void* calloc(std::size_t count, std::size_t bytes)
{
    using namespace mallard::preload;
    return hooks::allocate(mallard_trace_calloc, product(count, bytes), 0,
                           [=] { return next.calloc(count, bytes); });
}

void* realloc(void* block, std::size_t bytes)
{
    using namespace mallard::preload;
    return hooks::reallocate(block, bytes, [=] { return next.realloc(block, bytes); });
}

void* reallocarray(void* block, std::size_t count, std::size_t bytes)
{
    using namespace mallard::preload;
    std::size_t const all = product(count, bytes);
    return hooks::reallocate(block, all, [=] {
        return next.reallocarray != nullptr ? next.reallocarray(block, count, bytes)
                                            : next.realloc(block, all);
    });
}

void* aligned_alloc(std::size_t align, std::size_t bytes)
{
    using namespace mallard::preload;
    return hooks::allocate(mallard_trace_aligned_alloc, bytes, hooks::log2_of(align),
                           [=] { return next.aligned_alloc(align, bytes); });
}

void* memalign(std::size_t align, std::size_t bytes)
{
    using namespace mallard::preload;
    return hooks::allocate(mallard_trace_memalign, bytes, hooks::log2_of(align),
                           [=] { return next.memalign(align, bytes); });
}

int posix_memalign(void** block, std::size_t align, std::size_t bytes)
{
    using namespace mallard::preload;
    int error = 0;
    bool is_called = false;
    void* const got =
        hooks::allocate(mallard_trace_posix_memalign, bytes, hooks::log2_of(align), [&]() -> void* {
            is_called = true;
            error = next.posix_memalign(block, align, bytes);
            return error == 0 ? *block : nullptr;
        });
    if (!is_called) [[unlikely]] {
        *block = got;
        return got == nullptr ? ENOMEM : 0;
    }
    return error;
}

void* valloc(std::size_t bytes)
{
    using namespace mallard::preload;
    return hooks::allocate(mallard_trace_valloc, bytes, page_log2,
                           [=] { return next.valloc(bytes); });
}

void* pvalloc(std::size_t bytes)
{
    using namespace mallard::preload;
    return hooks::allocate(mallard_trace_pvalloc, bytes, page_log2,
                           [=] { return next.pvalloc(bytes); });
}

void free(void* block)
{
    using namespace mallard::preload;
    hooks::deallocate(mallard_trace_free, block, 0, 0, [=] { next.free(block); });
}

void cfree(void* block)
{
    using namespace mallard::preload;
    hooks::deallocate(mallard_trace_free, block, 0, 0, [=] { next.free(block); });
}

void free_sized(void* block, std::size_t bytes)
{
    using namespace mallard::preload;
    hooks::deallocate(mallard_trace_free_sized, block, bytes, 0, [=] {
        if (next.free_sized != nullptr)
            next.free_sized(block, bytes);
        else
            next.free(block);
    });
}

void free_aligned_sized(void* block, std::size_t align, std::size_t bytes)
{
    using namespace mallard::preload;
    hooks::deallocate(mallard_trace_free_aligned_sized, block, bytes, hooks::log2_of(align), [=] {
        if (next.free_aligned_sized != nullptr)
            next.free_aligned_sized(block, align, bytes);
        else
            next.free(block);
    });
}

/// Loads a library without RTLD_DEEPBIND. With this flag, the library would call the malloc of
/// libc, so one malloc could free blocks of the other. Jumps to the next dlopen, because dlopen
/// finds the RUNPATH and the namespace of its caller by the return address.
void* dlopen(const char* path, int flags)
{
    using namespace mallard::preload;
    if (!find_next()) [[unlikely]]
        return nullptr;
    return next.dlopen(path, flags & ~RTLD_DEEPBIND);
}

int dlclose(void* library)
{
    using namespace mallard::preload;
    int const result = find_next() ? next.dlclose(library) : -1;
    hooks::after_dlclose(); // another module may be loaded at the same addresses
    return result;
}

} // extern "C"

#pragma GCC visibility pop
