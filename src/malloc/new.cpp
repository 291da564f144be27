// operator new and delete, all of them.
//
// When memory is short, operator new calls the new_handler of the C++ runtime and throws its
// std::bad_alloc through cxx_runtime.hpp. The shared library looks the runtime up, because it needs
// none itself; the archive links the runtime.
#include "reads_options.hpp"

#include <cxx_runtime.hpp>
#include <served_by.hpp>

#include <cstdlib>
#include <new>

namespace {

/// Handlers are asked until there is memory, or none is left.
template <class Allocate>
[[gnu::noinline, gnu::cold]] void* insist(Allocate allocate, bool throws)
{
    for (;;) {
        std::new_handler const ask = mallard::cxx_runtime::new_handler();
        if (ask == nullptr) {
            if (throws)
                mallard::cxx_runtime::throw_bad_alloc();
            return nullptr;
        }
        ask();
        if (void* const block = allocate())
            return block;
    }
}

inline void* make(std::size_t bytes)
{
    void* const block = new_family::allocate(bytes);
    return block != nullptr ? block : insist([bytes] { return new_family::allocate(bytes); }, true);
}

inline void* make(std::size_t bytes, std::align_val_t align)
{
    auto const allocate = [=] {
        return new_family::allocate_aligned(bytes, static_cast<std::size_t>(align));
    };
    void* const block = allocate();
    return block != nullptr ? block : insist(allocate, true);
}

} // namespace

#pragma GCC visibility push(default)

void* operator new(std::size_t bytes)
{
    return make(bytes);
}
void* operator new[](std::size_t bytes)
{
    return make(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t align)
{
    return make(bytes, align);
}
void* operator new[](std::size_t bytes, std::align_val_t align)
{
    return make(bytes, align);
}

// If a handler throws, the result is null.
void* operator new(std::size_t bytes, const std::nothrow_t& quietly) noexcept
{
    void* const block = new_family::allocate(bytes);
    if (block != nullptr) [[likely]]
        return block;
    using form = void* (*)(std::size_t, const std::nothrow_t&);
    return mallard::cxx_runtime::catching<form>(
        [bytes](bool throws) {
            return insist([bytes] { return new_family::allocate(bytes); }, throws);
        },
        "_ZnwmRKSt9nothrow_t", bytes, quietly);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& quietly) noexcept
{
    return operator new(bytes, quietly);
}
void* operator new(std::size_t bytes, std::align_val_t align,
                   const std::nothrow_t& quietly) noexcept
{
    auto const allocate = [=] {
        return new_family::allocate_aligned(bytes, static_cast<std::size_t>(align));
    };
    void* const block = allocate();
    if (block != nullptr) [[likely]]
        return block;
    using form = void* (*)(std::size_t, std::align_val_t, const std::nothrow_t&);
    return mallard::cxx_runtime::catching<form>(
        [=](bool throws) { return insist(allocate, throws); }, "_ZnwmSt11align_val_tRKSt9nothrow_t",
        bytes, align, quietly);
}
void* operator new[](std::size_t bytes, std::align_val_t align,
                     const std::nothrow_t& quietly) noexcept
{
    return operator new(bytes, align, quietly);
}

void operator delete(void* block) noexcept
{
    new_family::deallocate(block);
}
void operator delete[](void* block) noexcept
{
    new_family::deallocate(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept
{
    new_family::deallocate(block);
}
void operator delete[](void* block, const std::nothrow_t&) noexcept
{
    new_family::deallocate(block);
}
void operator delete(void* block, std::size_t bytes) noexcept
{
    new_family::deallocate_sized(block, bytes);
}
void operator delete[](void* block, std::size_t bytes) noexcept
{
    new_family::deallocate_sized(block, bytes);
}
void operator delete(void* block, std::align_val_t) noexcept
{
    new_family::deallocate(block);
}
void operator delete[](void* block, std::align_val_t) noexcept
{
    new_family::deallocate(block);
}
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept
{
    new_family::deallocate(block);
}
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept
{
    new_family::deallocate(block);
}
void operator delete(void* block, std::size_t bytes, std::align_val_t align) noexcept
{
    new_family::deallocate_sized(block, bytes, static_cast<std::size_t>(align));
}
void operator delete[](void* block, std::size_t bytes, std::align_val_t align) noexcept
{
    new_family::deallocate_sized(block, bytes, static_cast<std::size_t>(align));
}

#pragma GCC visibility pop
