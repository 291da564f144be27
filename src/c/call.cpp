// Calls functions of the caller, which must not throw.
//
// An exception that passed through an allocator would leave the allocator half changed. Therefore
// this file alone is compiled without unwind tables (see CMakeLists.txt): an exception that arrives
// here cannot propagate, and the C++ runtime that threw it calls std::terminate with the stack
// intact. This is the effect of `noexcept`, without a C++ runtime in this library.
#include "source.hpp"

namespace mallard::c {

// Not a tail call: a tail call would drop the frame that stops the exception.
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
