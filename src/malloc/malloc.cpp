// The C family of malloc, as a program calls it: arguments are looked at here, and errno is
// set. Sizes above PTRDIFF_MAX are refused by all of them.
#include "../heap/park.hpp"
#include "../heap/requests.hpp"

#include <cerrno>
#include <cstdlib>

#include <unistd.h>

namespace engine = mallard::engine;

namespace {

constexpr std::size_t os_page_bytes = 4096;

/// Null and ENOMEM when the product has no size.
bool product(std::size_t count, std::size_t bytes, std::size_t& all) noexcept
{
    if (!__builtin_mul_overflow(count, bytes, &all))
        return true;
    errno = ENOMEM;
    return false;
}

void* aligned(std::size_t align, std::size_t bytes) noexcept
{
    if (!mallard::is_power_of_two(align)) {
        errno = EINVAL;
        return nullptr;
    }
    return engine::allocate_aligned(bytes, align);
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

void* malloc(std::size_t bytes) noexcept
{
    return engine::allocate(bytes);
}

void free(void* block) noexcept
{
    engine::deallocate(block);
}

void* calloc(std::size_t count, std::size_t bytes) noexcept
{
    std::size_t all = 0;
    return product(count, bytes, all) ? engine::allocate_zeroed(all) : nullptr;
}

void* realloc(void* block, std::size_t bytes) noexcept
{
    if (block == nullptr)
        return engine::allocate(bytes);
    if (bytes == 0) {
        engine::deallocate(block);
        return nullptr;
    }
    return engine::reallocate(block, bytes);
}

void* reallocarray(void* block, std::size_t count, std::size_t bytes) noexcept
{
    std::size_t all = 0;
    return product(count, bytes, all) ? realloc(block, all) : nullptr;
}

void* memalign(std::size_t align, std::size_t bytes) noexcept
{
    return aligned(align, bytes);
}

void* aligned_alloc(std::size_t align, std::size_t bytes) noexcept
{
    return aligned(align, bytes);
}

int posix_memalign(void** block, std::size_t align, std::size_t bytes) noexcept
{
    if (!mallard::is_power_of_two(align) || align < sizeof(void*))
        return EINVAL;
    int const before = errno;
    void* const fresh = engine::allocate_aligned(bytes, align);
    errno = before;
    if (fresh == nullptr)
        return ENOMEM;
    *block = fresh;
    return 0;
}

void* valloc(std::size_t bytes) noexcept
{
    return engine::allocate_aligned(bytes, os_page_bytes);
}

void* pvalloc(std::size_t bytes) noexcept
{
    std::size_t const whole = mallard::align_up(bytes, os_page_bytes);
    if (whole >= bytes)
        return engine::allocate_aligned(whole, os_page_bytes);
    errno = ENOMEM;
    return nullptr;
}

std::size_t malloc_usable_size(void* block) noexcept
{
    return block == nullptr ? 0 : engine::usable_bytes(block, "malloc_usable_size");
}

void cfree(void* block) noexcept
{
    engine::deallocate(block);
}

/// The size is not judged, as that of a sized delete is: where memory was short, or a heap is
/// another thread's, realloc to a few bytes leaves or gives a block of many.
void free_sized(void* block, std::size_t) noexcept
{
    engine::deallocate(block);
}

void free_aligned_sized(void* block, std::size_t align, std::size_t bytes) noexcept
{
    engine::deallocate_sized(block, bytes, align);
}

// What glibc calls its own by: some programs link to these.
void* __libc_malloc(std::size_t bytes) noexcept
{
    return malloc(bytes);
}
void __libc_free(void* block) noexcept
{
    free(block);
}
void __libc_cfree(void* block) noexcept
{
    free(block);
}
void* __libc_calloc(std::size_t count, std::size_t bytes) noexcept
{
    return calloc(count, bytes);
}
void* __libc_realloc(void* block, std::size_t bytes) noexcept
{
    return realloc(block, bytes);
}
void* __libc_memalign(std::size_t align, std::size_t bytes) noexcept
{
    return memalign(align, bytes);
}
void* __libc_valloc(std::size_t bytes) noexcept
{
    return valloc(bytes);
}
void* __libc_pvalloc(std::size_t bytes) noexcept
{
    return pvalloc(bytes);
}
int __posix_memalign(void** block, std::size_t align, std::size_t bytes) noexcept
{
    return posix_memalign(block, align, bytes);
}

} // extern "C"
#pragma GCC visibility pop
