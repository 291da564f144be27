// Calls functions of the API's caller, which must not throw.
//
// An exception that passed through an allocator would leave the allocator in an inconsistent state.
// Therefore this file, and no other file, is compiled without unwind tables (see CMakeLists.txt).
// An exception that arrives here cannot propagate, and the C++ runtime that threw the exception
// calls std::terminate with the stack intact. The effect is that of `noexcept`, but this library
// needs no C++ runtime.
#include "source.hpp"

namespace mallard::c {

// The functions below prevent tail calls, because a tail call would remove the stack frame that
// stops the exception.
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
