// operator new and delete in all their forms, for a library that is preloaded. One source file of
// each such library includes this header, after that file has defined
// `mallard::preload::operators`:
//
//     make<Form, More...>(bytes, more...)      called by each operator new
//     destroy<Form, More...>(block, more...)   called by each operator delete
//
// Both must be inlined, so that they can read the return address of the operator that the program
// has called.
#pragma once

#include "next_operator.hpp"

using mallard::preload::delete_array;
using mallard::preload::delete_one;
using mallard::preload::new_array;
using mallard::preload::new_one;
using mallard::preload::operators;
using nothrow = const std::nothrow_t&;

#pragma GCC visibility push(default)

void* operator new(std::size_t bytes)
{
    return operators::make<new_one>(bytes);
}
void* operator new[](std::size_t bytes)
{
    return operators::make<new_array>(bytes);
}
void* operator new(std::size_t bytes, nothrow quietly) noexcept
{
    return operators::make<new_one, nothrow>(bytes, quietly);
}
void* operator new[](std::size_t bytes, nothrow quietly) noexcept
{
    return operators::make<new_array, nothrow>(bytes, quietly);
}
void* operator new(std::size_t bytes, std::align_val_t align)
{
    return operators::make<new_one>(bytes, align);
}
void* operator new[](std::size_t bytes, std::align_val_t align)
{
    return operators::make<new_array>(bytes, align);
}
void* operator new(std::size_t bytes, std::align_val_t align, nothrow quietly) noexcept
{
    return operators::make<new_one, std::align_val_t, nothrow>(bytes, align, quietly);
}
void* operator new[](std::size_t bytes, std::align_val_t align, nothrow quietly) noexcept
{
    return operators::make<new_array, std::align_val_t, nothrow>(bytes, align, quietly);
}

void operator delete(void* block) noexcept
{
    operators::destroy<delete_one>(block);
}
void operator delete[](void* block) noexcept
{
    operators::destroy<delete_array>(block);
}
void operator delete(void* block, std::size_t bytes) noexcept
{
    operators::destroy<delete_one>(block, bytes);
}
void operator delete[](void* block, std::size_t bytes) noexcept
{
    operators::destroy<delete_array>(block, bytes);
}
void operator delete(void* block, std::align_val_t align) noexcept
{
    operators::destroy<delete_one>(block, align);
}
void operator delete[](void* block, std::align_val_t align) noexcept
{
    operators::destroy<delete_array>(block, align);
}
void operator delete(void* block, std::size_t bytes, std::align_val_t align) noexcept
{
    operators::destroy<delete_one>(block, bytes, align);
}
void operator delete[](void* block, std::size_t bytes, std::align_val_t align) noexcept
{
    operators::destroy<delete_array>(block, bytes, align);
}
void operator delete(void* block, nothrow quietly) noexcept
{
    operators::destroy<delete_one, nothrow>(block, quietly);
}
void operator delete[](void* block, nothrow quietly) noexcept
{
    operators::destroy<delete_array, nothrow>(block, quietly);
}
void operator delete(void* block, std::align_val_t align, nothrow quietly) noexcept
{
    operators::destroy<delete_one, std::align_val_t, nothrow>(block, align, quietly);
}
void operator delete[](void* block, std::align_val_t align, nothrow quietly) noexcept
{
    operators::destroy<delete_array, std::align_val_t, nothrow>(block, align, quietly);
}

#pragma GCC visibility pop
