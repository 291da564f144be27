#include "memory.hpp"

#include "errno_kept_linux.hpp"
#include "processor.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>

namespace mallard::os {
namespace {

std::byte* map_as(void* where, std::size_t bytes, int protection, int flags) noexcept
{
    void* const at = ::mmap(where, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

} // namespace

std::byte* reserve(std::size_t bytes, std::size_t align) noexcept
{
    errno_kept const keep;
    std::size_t const page = kernel_page_bytes();
    std::size_t const wide = align <= page ? bytes : bytes + align;
    if (wide < bytes)
        return nullptr;
    std::byte* const at = map_as(nullptr, wide, PROT_NONE, MAP_NORESERVE);
    if (at == nullptr)
        return nullptr;
    std::size_t const before = -reinterpret_cast<std::uintptr_t>(at) & (align - 1);
    if (align <= page)
        return at;
    if (before != 0)
        ::munmap(at, before);
    if (wide - before != bytes)
        ::munmap(at + before + bytes, wide - before - bytes);
    return at + before;
}

bool commit(std::byte* at, std::size_t bytes) noexcept
{
    errno_kept const keep;
    // A sandbox may forbid mprotect. A new mapping at the same address has the same effect.
    return ::mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0 ||
           (errno != ENOMEM &&
            map_as(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_NORESERVE) != nullptr);
}

growth map_at(std::byte* at, std::size_t bytes) noexcept
{
    errno_kept const keep;
#if defined(__SANITIZE_THREAD__)
    // ThreadSanitizer's `mmap` replaces an address outside of its range by 0. As a hint, 0 means
    // any address. With MAP_FIXED_NOREPLACE, the superuser would get the page at address 0.
    constexpr int only_there = 0;
#else
    constexpr int only_there = MAP_FIXED_NOREPLACE;
#endif
    std::byte* const there = map_as(at, bytes, PROT_READ | PROT_WRITE, only_there | MAP_NORESERVE);
    if (there == at)
        return growth::made;
    if (there == nullptr)
        return errno == EEXIST ? growth::blocked : growth::refused;
    ::munmap(there, bytes); // kernels before 4.17, and Valgrind, treat the address as a hint
    return growth::blocked;
}

std::byte* map(std::size_t bytes) noexcept
{
    errno_kept const keep;
    return map_as(nullptr, bytes, PROT_READ | PROT_WRITE, 0);
}

std::byte* remap(std::byte* at, std::size_t bytes, std::size_t bytes_new) noexcept
{
    errno_kept const keep;
    void* const moved = ::mremap(at, bytes, bytes_new, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? nullptr : static_cast<std::byte*>(moved);
}

bool move_pages(std::byte* from, std::byte* to, std::size_t bytes) noexcept
{
    errno_kept const keep;
    constexpr int mremap_dontunmap = 4; // older headers lack the name
    return ::mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | mremap_dontunmap, to) !=
           MAP_FAILED;
}

bool unmap(std::byte* at, std::size_t bytes) noexcept
{
    errno_kept const keep;
    return ::munmap(at, bytes) == 0;
}

bool purge(std::byte* at, std::size_t bytes) noexcept
{
    errno_kept const keep;
    std::size_t const page = kernel_page_bytes();
    std::size_t const before = std::min(-reinterpret_cast<std::uintptr_t>(at) & (page - 1), bytes);
    std::size_t const after = (bytes - before) & (page - 1);
    std::size_t const whole = bytes - before - after;
    if (whole != 0 && ::madvise(at + before, whole, MADV_DONTNEED) != 0)
        return false;
    std::memset(at, 0, before);
    std::memset(at + before + whole, 0, after);
    return true;
}

void advise_huge(std::byte* at, std::size_t bytes, bool wanted) noexcept
{
    errno_kept const keep;
    ::madvise(at, bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

} // namespace mallard::os
