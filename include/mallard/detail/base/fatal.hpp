// All messages that stop the process. (The messages of `checked` and `guarded`, which need not stop
// it, are in debug/fault.hpp.)
//
// Each message has three lines: what happened, the state, and what to do next. Printing allocates
// nothing. Then the process aborts, so a core file shows the bug.
#pragma once

#include <mallard/detail/base/text.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace mallard {

/// A message in a fixed buffer; a longer message is cut.
class fatal_message {
public:
    template <class T>
    fatal_message& operator<<(T part) noexcept
    {
        out_ << part;
        return *this;
    }

    void print() const noexcept
    {
        std::fwrite(text_, 1, out_.written(), stderr);
        std::fflush(stderr);
    }

    [[noreturn]] void stop() const noexcept
    {
        print();
        std::abort();
    }

private:
    char text_[512];
    text_writer out_{text_, sizeof text_};
};

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_alignment(std::size_t align) noexcept
{
    (fatal_message() << "mallard: alignment " << align << " is not a power of two\n"
                     << "  nothing was allocated; every alignment is 1, 2, 4, 8, ...\n"
                     << "  help: write alignof(T), or mallard::layout_of<T>(count)\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_double_free(const void* block,
                                                                     std::size_t bytes) noexcept
{
    (fatal_message() << "mallard: double free of " << block << " in a pool\n"
                     << "  the block (" << bytes << " bytes) was already free; "
                     << "this call changed nothing\n"
                     << "  help: run under `valgrind ./app`, or build with -fsanitize=address, "
                     << "to see who uses it after the first free\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void
fatal_interior_free(const void* pointer, const void* block, std::size_t bytes) noexcept
{
    (fatal_message() << "mallard: free of " << pointer << ", which is inside a block of a pool\n"
                     << "  the block (" << bytes << " bytes) begins at " << block
                     << "; this call changed nothing\n"
                     << "  help: deallocate the pointer that allocate returned; "
                     << "`break mallard::fatal_interior_free` in gdb shows the caller\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_foreign_free(const void* pointer) noexcept
{
    (fatal_message() << "mallard: free of " << pointer << ", which is not a block of this pool\n"
                     << "  it was not allocated here, or was freed already; "
                     << "this call changed nothing\n"
                     << "  help: ask `pool.owns(pointer)` first, or find the caller with "
                     << "`break mallard::fatal_foreign_free` in gdb\n")
        .stop();
}

/// For a free of `pointer` inside the slot of `bytes` at `slot`, which has no live block. `carved`:
/// the slot was used before.
[[noreturn, gnu::cold, gnu::noinline]] inline void
fatal_bad_free(const void* pointer, const void* slot, std::size_t bytes, bool carved) noexcept
{
    if (!carved)
        fatal_foreign_free(pointer);
    if (pointer != slot)
        fatal_interior_free(pointer, slot, bytes);
    fatal_double_free(pointer, bytes);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_stale_mark() noexcept
{
    (fatal_message() << "mallard: rewind to a mark that is no longer valid in an arena\n"
                     << "  the arena was rewound below it, reset or released; "
                     << "this call changed nothing\n"
                     << "  help: rewind marks newest first, or let `mallard::scope` do it\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_handle_overflow() noexcept
{
    (fatal_message() << "mallard: more than 2^29 handles of one object\n"
                     << "  a program that copies handles and never drops one ends here; "
                     << "the object is still alive\n"
                     << "  help: find who keeps them with "
                     << "`break mallard::fatal_handle_overflow` in gdb\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_shared_destroy(const void* object) noexcept
{
    (fatal_message()
     << "mallard: destroy of " << object << ", which other handles share\n"
     << "  an object has either one box, or rc and arc handles; this call changed nothing\n"
     << "  help: let the last rc or arc destroy it; `leak` from a box only\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_no_barrier() noexcept
{
    (fatal_message() << "mallard: the system refuses membarrier, which it had granted before\n"
                     << "  the caches of other threads cannot be inspected; nothing was changed\n"
                     << "  help: permit the system call membarrier in the sandbox, from the start "
                     << "or never\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_out_of_memory() noexcept
{
    (fatal_message() << "mallard: out of memory in allocate, built without exceptions\n"
                     << "  the source is exhausted; no allocator was changed\n"
                     << "  help: call try_allocate, which returns null, or build with exceptions\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_foreign_element(const void* value) noexcept
{
    (fatal_message() << "mallard: key_of " << value
                     << ", which is not an element of this slot map\n"
                     << "  it is elsewhere in memory, or was erased; this call changed nothing\n"
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
    (fatal_message() << "mallard: a shared slot map ends while a guard holds " << value << "\n"
                     << "  the guard would use memory that is gone; the map was not freed\n"
                     << "  help: end all guards first: declare the map before what holds them\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_not_sealed(const char* why) noexcept
{
    (fatal_message() << "mallard: protected pages cannot be sealed again\n"
                     << "  " << why << "; they are still writable\n"
                     << "  help: call seal() and unseal(), which say so, in place of the scope\n")
        .stop();
}

/// For `for_each_failure`: its function leaked blocks, or freed too many.
[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_unbalanced(std::size_t number, bool failed,
                                                                    std::ptrdiff_t blocks,
                                                                    std::ptrdiff_t bytes) noexcept
{
    auto const amount = [](std::ptrdiff_t n) { return static_cast<std::size_t>(n < 0 ? -n : n); };
    fatal_message message;
    message << "mallard: ";
    if (blocks == 0)
        message << "blocks were freed with wrong sizes";
    else
        message << amount(blocks) << (amount(blocks) == 1 ? " block" : " blocks")
                << (blocks > 0 ? " leaked" : " too many freed");
    if (failed)
        message << " when allocation " << number << " failed\n";
    else
        message << " when no allocation failed\n";
    message << "  in a function under for_each_failure: bytes allocated and freed differ by "
            << amount(bytes) << "\n"
            << "  help: run it alone on a `failing` with {.first = " << number
            << "}, and `break mallard::throw_bad_alloc` in gdb\n";
    message.stop();
}

} // namespace mallard
