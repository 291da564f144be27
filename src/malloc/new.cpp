// operator new and delete, in all their forms.
//
// When an allocation fails, operator new calls the new_handler of the C++ runtime, and then throws
// std::bad_alloc. cxx_runtime.hpp finds the functions of the runtime for both. The shared library
// must not need a C++ runtime, so it looks up the functions with dlsym. The archive links them.
#include "options.hpp"

#include <backend.hpp>
#include <cxx_runtime.hpp>

#include <cstdlib>
#include <new>

namespace {

/// Calls the new_handler and tries again, until there is memory or no handler is set.
template <class Allocate>
[[gnu::noinline, gnu::cold]] void* ask_handlers(Allocate allocate, bool throws)
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
    return block != nullptr ? block
                            : ask_handlers([bytes] { return new_family::allocate(bytes); }, true);
}

inline void* make(std::size_t bytes, std::align_val_t align)
{
    auto const allocate = [=] {
        return new_family::allocate_aligned(bytes, static_cast<std::size_t>(align));
    };
    void* const block = allocate();
    return block != nullptr ? block : ask_handlers(allocate, true);
}

} // namespace

#pragma GCC visibility push(default)

void* operator new(std::size_t bytes)
{
    return make(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t align)
{
    return make(bytes, align);
}

// The nothrow forms return null if a handler throws.
void* operator new(std::size_t bytes, const std::nothrow_t& quietly) noexcept
{
    void* const block = new_family::allocate(bytes);
    if (block != nullptr) [[likely]]
        return block;
    using form = void* (*)(std::size_t, const std::nothrow_t&);
    return mallard::cxx_runtime::catching<form>(
        [bytes](bool throws) {
            return ask_handlers([bytes] { return new_family::allocate(bytes); }, throws);
        },
        "_ZnwmRKSt9nothrow_t", bytes, quietly);
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
        [=](bool throws) { return ask_handlers(allocate, throws); },
        "_ZnwmSt11align_val_tRKSt9nothrow_t", bytes, align, quietly);
}

void operator delete(void* block) noexcept
{
    new_family::deallocate(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept
{
    new_family::deallocate(block);
}
void operator delete(void* block, std::align_val_t) noexcept
{
    new_family::deallocate(block);
}
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept
{
    new_family::deallocate(block);
}
void operator delete(void* block, std::size_t bytes) noexcept
{
    new_family::deallocate_sized(block, bytes);
}
void operator delete(void* block, std::size_t bytes, std::align_val_t align) noexcept
{
    new_family::deallocate_sized(block, bytes, static_cast<std::size_t>(align));
}

// The forms for arrays are aliases of the same functions.
[[gnu::alias("_Znwm")]] void* operator new[](std::size_t);
[[gnu::alias("_ZnwmSt11align_val_t")]] void* operator new[](std::size_t, std::align_val_t);
[[gnu::alias("_ZnwmRKSt9nothrow_t")]] void* operator new[](std::size_t,
                                                           const std::nothrow_t&) noexcept;
[[gnu::alias("_ZnwmSt11align_val_tRKSt9nothrow_t")]] void*
operator new[](std::size_t, std::align_val_t, const std::nothrow_t&) noexcept;
[[gnu::alias("_ZdlPv")]] void operator delete[](void*) noexcept;
[[gnu::alias("_ZdlPvRKSt9nothrow_t")]] void operator delete[](void*,
                                                              const std::nothrow_t&) noexcept;
[[gnu::alias("_ZdlPvSt11align_val_t")]] void operator delete[](void*, std::align_val_t) noexcept;
[[gnu::alias("_ZdlPvSt11align_val_tRKSt9nothrow_t")]] void
operator delete[](void*, std::align_val_t, const std::nothrow_t&) noexcept;
[[gnu::alias("_ZdlPvm")]] void operator delete[](void*, std::size_t) noexcept;
[[gnu::alias("_ZdlPvmSt11align_val_t")]] void operator delete[](void*, std::size_t,
                                                                std::align_val_t) noexcept;

#pragma GCC visibility pop
