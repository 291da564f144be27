// Calls of a caller's functions.
//
// They may not throw, and no exception may pass the allocators, which would be
// left half changed. This file alone is compiled without unwind tables (see
// CMakeLists.txt): an exception that gets here finds no way on, so the C++
// runtime that threw it calls std::terminate, with the stack as it was. That is
// what `noexcept` does, without a C++ runtime of our own.
#include "source.hpp"

namespace mallard::c {

// Not a tail call, as a frame that is gone stops nobody.
void* call_take(const source_choice& to, std::size_t bytes, std::size_t align) noexcept
{
    void* volatile const data = to.take(to.context, bytes, align);
    return data;
}

void call_give(const source_choice& to, chunk c) noexcept
{
    to.give(to.context, c.data, c.bytes, c.align);
    asm volatile("");
}

void call_visit(visitor visit, void* context, void* block) noexcept
{
    visit(context, block);
    asm volatile("");
}

} // namespace mallard::c
