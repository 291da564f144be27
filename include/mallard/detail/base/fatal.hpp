// The messages about misused blocks. After such a message, the process stops. fatal_objects.hpp has
// the messages about marks, handles and other objects. (The messages of `checked` and `guarded`,
// which need not stop the process, are in debug/fault.hpp.)
//
// Each message has three lines: what happened, the state, and what to do next. Printing a message
// allocates nothing. Then the process aborts, so a core file shows the bug.
#pragma once

#include <mallard/detail/base/text.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace mallard {

/// A message in a fixed buffer. A longer message is truncated.
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
                     << "to see who uses the block after the first free\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void
fatal_interior_free(const void* pointer, const void* block, std::size_t bytes) noexcept
{
    (fatal_message() << "mallard: free of " << pointer << ", which is inside a block of a pool\n"
                     << "  the block (" << bytes << " bytes) begins at " << block
                     << "; this call changed nothing\n"
                     << "  help: free the pointer that the allocation returned; "
                     << "`break abort` in gdb shows the caller\n")
        .stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_foreign_free(const void* pointer) noexcept
{
    (fatal_message() << "mallard: free of " << pointer << ", which is not a block of this pool\n"
                     << "  the block was not allocated here, or was freed already; "
                     << "this call changed nothing\n"
                     << "  help: call `owns` first (in C `mallard_pool_owns`), or find the caller "
                     << "with `break abort` in gdb\n")
        .stop();
}

/// Reports a free with a size of `bytes`, which cannot be the size with which the block was
/// allocated.
[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_wrong_size(const void* block,
                                                                    std::size_t bytes) noexcept
{
    (fatal_message()
     << "mallard: free of " << block << " with a size that it was not allocated with\n"
     << "  the call passed " << bytes
     << " bytes, but the block is in another size class; this call changed nothing\n"
     << "  help: pass the size and the alignment of the allocation to `deallocate`, "
     << "in C to `mallard_multipool_free`\n")
        .stop();
}

/// Reports a bad free of `pointer` and stops the process. `pointer` lies in the slot of `bytes`
/// bytes at `slot`, but is not the start of a block in use. `carved` is true if the slot has held a
/// block before.
[[noreturn, gnu::cold, gnu::noinline]] inline void
fatal_bad_free(const void* pointer, const void* slot, std::size_t bytes, bool carved) noexcept
{
    if (!carved)
        fatal_foreign_free(pointer);
    if (pointer != slot)
        fatal_interior_free(pointer, slot, bytes);
    fatal_double_free(pointer, bytes);
}

/// Reports a chunk that breaks the contract of sources, and stops the process. The source returned
/// `data` and `bytes` for a request of `bytes_asked` bytes at a multiple of `align_asked`.
[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_bad_chunk(const void* data,
                                                                   std::size_t bytes,
                                                                   std::size_t bytes_asked,
                                                                   std::size_t align_asked) noexcept
{
    fatal_message text;
    if (data == nullptr)
        text << "mallard: a source returned no chunk, and threw no exception\n";
    else if (bytes < bytes_asked)
        text << "mallard: a source returned a chunk of " << bytes << " bytes instead of "
             << bytes_asked << "\n";
    else
        text << "mallard: a source returned a chunk at " << data << ", not at a multiple of "
             << align_asked << "\n";
    text << "  an allocator requested " << bytes_asked << " bytes at a multiple of " << align_asked
         << "; nothing was allocated\n";
    if (data == nullptr)
        text << "  help: throw an exception in `take` and `allocate`, or define `try_take` alone, "
                "which may return null\n";
    else
        text << "  help: return both `bytes` and `align` of the layout, or a null chunk: see "
                "`mallard::chunk_source`\n";
    text.stop();
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fatal_out_of_memory() noexcept
{
    (fatal_message() << "mallard: out of memory in allocate, in a build without exceptions\n"
                     << "  the source is exhausted; no allocator was changed\n"
                     << "  help: call try_allocate, which returns null, or build with exceptions\n")
        .stop();
}

} // namespace mallard
