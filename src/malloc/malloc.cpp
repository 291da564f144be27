// malloc, free and the other C functions. The functions check arguments, set errno and call the
// backend. For sizes above PTRDIFF_MAX, every function fails.
#include "arguments.hpp"
#include "options.hpp"

#include "../os/libc.hpp"
#include "../os/processor.hpp"

#include <backend.hpp>

#include <mallard/detail/base/bits.hpp>

#include <cerrno>
#include <cstdlib>

using mallard::os::kernel_page_bytes;

#pragma GCC visibility push(default)
extern "C" {

void* malloc(std::size_t bytes) MALLARD_LIBC_NOEXCEPT
{
    return malloc_family::allocate(bytes);
}

void free(void* block) MALLARD_LIBC_NOEXCEPT
{
    malloc_family::deallocate(block);
}

void* calloc(std::size_t count, std::size_t bytes) MALLARD_LIBC_NOEXCEPT
{
    std::size_t all = 0;
    return mallard::product(count, bytes, all) ? malloc_family::allocate_zeroed(all) : nullptr;
}

void* realloc(void* block, std::size_t bytes) MALLARD_LIBC_NOEXCEPT
{
    if (block == nullptr)
        return malloc_family::allocate(bytes);
    if (bytes == 0) {
        malloc_family::deallocate(block);
        return nullptr;
    }
    return malloc_family::reallocate(block, bytes);
}

void* reallocarray(void* block, std::size_t count, std::size_t bytes) MALLARD_LIBC_NOEXCEPT
{
    std::size_t all = 0;
    return mallard::product(count, bytes, all) ? realloc(block, all) : nullptr;
}

void* memalign(std::size_t align, std::size_t bytes) MALLARD_LIBC_NOEXCEPT
{
    if (mallard::is_power_of_two(align))
        return malloc_family::allocate_aligned(bytes, align);
    errno = EINVAL;
    return nullptr;
}
[[gnu::alias("memalign")]] void* aligned_alloc(std::size_t align,
                                               std::size_t bytes) MALLARD_LIBC_NOEXCEPT;

/// Allocates an aligned block. Returns 0 or an error code. If there is no memory, also sets errno
/// to ENOMEM, as glibc does, because some programs read errno.
int posix_memalign(void** block, std::size_t align, std::size_t bytes) MALLARD_LIBC_NOEXCEPT
{
    if (!mallard::is_power_of_two(align) || align < sizeof(void*))
        return EINVAL;
    void* const fresh = malloc_family::allocate_aligned(bytes, align);
    if (fresh == nullptr)
        return ENOMEM;
    *block = fresh;
    return 0;
}

void* valloc(std::size_t bytes) MALLARD_LIBC_NOEXCEPT
{
    return malloc_family::allocate_aligned(bytes, kernel_page_bytes());
}

void* pvalloc(std::size_t bytes) noexcept
{
    std::size_t const whole = mallard::align_up(bytes, kernel_page_bytes());
    if (whole >= bytes)
        return malloc_family::allocate_aligned(whole, kernel_page_bytes());
    errno = ENOMEM;
    return nullptr;
}

std::size_t malloc_usable_size(void* block) noexcept
{
    return block == nullptr ? 0 : malloc_family::usable_bytes(block, "malloc_usable_size");
}

/// Frees a block and ignores the size, unlike a sized delete. The block may be much larger than the
/// correct size, because a realloc to a smaller size may leave the block as large as before. This
/// happens if memory is short, or if the block's heap belongs to another thread.
void free_sized(void* block, std::size_t) noexcept
{
    malloc_family::deallocate(block);
}

void free_aligned_sized(void* block, std::size_t align, std::size_t bytes) noexcept
{
    malloc_family::deallocate_sized(block, bytes, align);
}

// Aliases of the same functions. The aliases are glibc's internal names, which some programs use,
// and cfree. With musl, the aliases are not defined, because in musl such names belong to functions
// that musl itself calls.
MALLARD_IN_GLIBC([[gnu::alias("malloc")]] void* __libc_malloc(std::size_t) noexcept;
                 [[gnu::alias("free")]] void __libc_free(void*) noexcept;
                 [[gnu::alias("free")]] void __libc_cfree(void*) noexcept;
                 [[gnu::alias("free")]] void cfree(void*) noexcept;
                 [[gnu::alias("calloc")]] void* __libc_calloc(std::size_t, std::size_t) noexcept;
                 [[gnu::alias("realloc")]] void* __libc_realloc(void*, std::size_t) noexcept;
                 [[gnu::alias("memalign")]] void* __libc_memalign(std::size_t,
                                                                  std::size_t) noexcept;
                 [[gnu::alias("valloc")]] void* __libc_valloc(std::size_t) noexcept;
                 [[gnu::alias("pvalloc")]] void* __libc_pvalloc(std::size_t) noexcept;
                 [[gnu::alias("posix_memalign")]] int __posix_memalign(void**, std::size_t,
                                                                       std::size_t) noexcept;)

} // extern "C"
#pragma GCC visibility pop
