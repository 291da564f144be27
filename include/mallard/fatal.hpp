// The messages that stop a process, all of them, and nothing else. (What `checked`
// and `guarded` find need not stop it: their messages are in fault.hpp.)
//
// Each has three lines: what happened, what state things are in, what to type
// next. They are printed without allocating, then the process aborts: a caller's
// bug is never papered over, and a core file shows where it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace mallard {

/// A message put together in place: no allocation, no locale, cut at its end
/// when it does not fit.
class fatal_message {
public:
    fatal_message& operator<<(const char* text) noexcept
    {
        while (*text != '\0')
            put(*text++);
        return *this;
    }

    fatal_message& operator<<(std::size_t number) noexcept
    {
        char digits[20];
        int count = 0;
        do {
            digits[count++] = static_cast<char>('0' + number % 10);
            number /= 10;
        } while (number != 0);
        while (count > 0)
            put(digits[--count]);
        return *this;
    }

    fatal_message& operator<<(const void* address) noexcept
    {
        *this << "0x";
        auto const value = reinterpret_cast<std::uintptr_t>(address);
        int shift = 8 * sizeof value - 4;
        while (shift > 0 && (value >> shift) == 0)
            shift -= 4;
        for (; shift >= 0; shift -= 4)
            put("0123456789abcdef"[(value >> shift) & 15]);
        return *this;
    }

    void print() const noexcept
    {
        std::fwrite(text_, 1, length_, stderr);
        std::fflush(stderr);
    }

    [[noreturn]] void stop() const noexcept
    {
        print();
        std::abort();
    }

private:
    void put(char c) noexcept
    {
        if (length_ < sizeof text_)
            text_[length_++] = c;
    }

    char text_[512];
    std::size_t length_ = 0;
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
                     << "  it was not given out here, or went back already; "
                     << "this call changed nothing\n"
                     << "  help: ask `pool.owns(pointer)` first, or find the caller with "
                     << "`break mallard::fatal_foreign_free` in gdb\n")
        .stop();
}

/// A pointer into the slot of `bytes` at `slot`, which holds no block in use:
/// `carved` says whether it ever did.
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

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_no_barrier() noexcept
{
    (fatal_message() << "mallard: the system refuses membarrier, which it had granted before\n"
                     << "  what threads have at hand cannot be looked at; nothing was changed\n"
                     << "  help: permit the system call membarrier in the sandbox, from the start "
                     << "or never\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_out_of_memory() noexcept
{
    (fatal_message() << "mallard: out of memory in allocate, built without exceptions\n"
                     << "  the source gave nothing; no allocator was changed\n"
                     << "  help: call try_allocate, which returns null, or build with exceptions\n")
        .stop();
}

} // namespace mallard
