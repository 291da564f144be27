// operator new and delete, all of them.
//
// The library needs no C++ runtime. A program that has one has a handler for want of memory,
// and expects std::bad_alloc: both are looked up when they are needed, since a runtime may
// have come later than this library.
#include <served_by.hpp>

#include "../os/system.hpp"

#include <cstdlib>
#include <new>

#include <dlfcn.h>

namespace {

using handler = void (*)();

template <class F>
F symbol(const char* name) noexcept
{
    void* found = ::dlsym(RTLD_DEFAULT, name);
    // A runtime that a plugin brought along is not among the default ones.
    if (found == nullptr)
        if (void* const runtime = ::dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD))
            found = ::dlsym(runtime, name);
    return reinterpret_cast<F>(found);
}

/// What comes after this library in the order of loading.
template <class F>
F next_symbol(const char* name) noexcept
{
    return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

[[noreturn]] void throw_bad_alloc_of_runtime()
{
    if (auto const thrower = symbol<handler>("_ZSt17__throw_bad_allocv"))
        thrower();
    static constexpr char text[] = "mallard: out of memory in operator new, without a C++ runtime\n"
                                   "  std::bad_alloc cannot be thrown\n"
                                   "  help: link the program with libstdc++, or call "
                                   "operator new(bytes, std::nothrow)\n";
    mallard::os::write_error(text, sizeof text - 1);
    std::abort();
}

/// Handlers are asked until there is memory, or none is left.
template <class Allocate>
[[gnu::noinline, gnu::cold]] void* insist(Allocate allocate, bool throws)
{
    for (;;) {
        auto const get = symbol<handler (*)()>("_ZSt15get_new_handlerv");
        handler const ask = get == nullptr ? nullptr : get();
        if (ask == nullptr) {
            if (throws)
                throw_bad_alloc_of_runtime();
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

// A handler that throws is answered by null. To catch takes a runtime: its own form of these
// calls ours, which throws, and catches.
void* operator new(std::size_t bytes, const std::nothrow_t& quietly) noexcept
{
    void* const block = new_family::allocate(bytes);
    if (block != nullptr) [[likely]]
        return block;
    using form = void* (*)(std::size_t, const std::nothrow_t&);
    if (auto const of_runtime = next_symbol<form>("_ZnwmRKSt9nothrow_t"))
        return of_runtime(bytes, quietly);
    return insist([bytes] { return new_family::allocate(bytes); }, false);
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
    if (auto const of_runtime = next_symbol<form>("_ZnwmSt11align_val_tRKSt9nothrow_t"))
        return of_runtime(bytes, align, quietly);
    return insist(allocate, false);
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
