// The messages about misused marks, handles, slot map elements and pages, and about failed tests.
// After such a message, the process stops. fatal.hpp describes the parts of a message.
#pragma once

#include <mallard/detail/base/fatal.hpp>

namespace mallard {

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_stale_mark() noexcept
{
    (fatal_message()
     << "mallard: rewind to a mark that is no longer valid in an arena\n"
     << "  the arena was rewound to an earlier mark, reset or released; "
     << "this call changed nothing\n"
     << "  help: rewind marks newest first, with `mallard_arena_rewind` in C; in C++ "
     << "`mallard::scope` does so\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_handle_overflow() noexcept
{
    (fatal_message() << "mallard: more than 2^29 handles of one object\n"
                     << "  the program copies handles without destroying them; "
                     << "the object is still alive\n"
                     << "  help: find the code that keeps them with "
                     << "`break mallard::fatal_handle_overflow` in gdb\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_shared_destroy(const void* object) noexcept
{
    (fatal_message()
     << "mallard: destroy of " << object << ", to which other handles refer\n"
     << "  an object has either one box, or rc and arc handles; this call changed nothing\n"
     << "  help: let the last rc or arc destroy it; call `leak` only on a box\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_foreign_element(const void* value) noexcept
{
    (fatal_message()
     << "mallard: key_of " << value << ", which is not an element of this slot map\n"
     << "  the element is elsewhere in memory, or was erased; this call changed nothing\n"
     << "  help: keep the key that insert returned; "
     << "`break mallard::fatal_foreign_element` in gdb shows the caller\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_dead_iterator() noexcept
{
    (fatal_message()
     << "mallard: read of a slot map iterator that points to no element\n"
     << "  the element was erased, or the iterator is at the end; this call changed nothing\n"
     << "  help: advance an iterator whose element was erased before reading it, "
     << "or erase by `retain`\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_guarded_element(const void* value) noexcept
{
    (fatal_message() << "mallard: a shared slot map is destroyed while a guard holds " << value
                     << "\n"
                     << "  the guard would use freed memory, so the map was not freed\n"
                     << "  help: destroy all guards first: declare the map before its guards\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_not_sealed(const char* why) noexcept
{
    (fatal_message()
     << "mallard: protected pages cannot be sealed again\n"
     << "  " << why << "; they are still writable\n"
     << "  help: call seal() and unseal(), which return false if they fail, instead of the scope\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_no_barrier() noexcept
{
    (fatal_message() << "mallard: the system rejects membarrier, which it allowed before\n"
                     << "  the caches of other threads cannot be inspected; nothing was changed\n"
                     << "  help: let the sandbox allow the system call membarrier from the start "
                     << "or never\n")
        .stop();
}

/// Reports that the function given to `for_each_failure` leaked blocks, or freed too many, and
/// stops the process.
[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_unbalanced(std::size_t number, bool failed,
                                                                    std::ptrdiff_t blocks,
                                                                    std::ptrdiff_t bytes) noexcept
{
    auto const amount = [](std::ptrdiff_t n) { return static_cast<std::size_t>(n < 0 ? -n : n); };
    fatal_message message;
    message << "mallard: ";
    if (blocks == 0)
        message << "blocks were freed with incorrect sizes";
    else
        message << amount(blocks) << (amount(blocks) == 1 ? " block" : " blocks")
                << (blocks > 0 ? " leaked" : " freed too often");
    if (failed)
        message << " when allocation " << number << " failed\n";
    else
        message << " when no allocation failed\n";
    message << "  in a function under for_each_failure: bytes allocated and freed differ by "
            << amount(bytes) << "\n"
            << "  help: run the function alone on a `failing` with {.first = " << number
            << "}, and `break mallard::throw_bad_alloc` in gdb\n";
    message.stop();
}

} // namespace mallard
