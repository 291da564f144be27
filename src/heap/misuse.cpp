#include "misuse.hpp"

#include "reservation.hpp"

#include "../os/system.hpp"

#include <mallard/detail/base/text.hpp>

#include <cstdlib>

namespace mallard::engine {
namespace {

/// Writes the line of a message that explains how to find the bug. `p` is the address that the
/// program passed. The line for heaps is different, because the checked malloc does not check
/// heaps.
void write_help(text_writer& out, const void* p) noexcept
{
    char path[256];
    reservation* const in = reservation_of(p);
    if (in != nullptr && is_heaps(in->entry_at(in->slice_of(p)))) {
        out << "  help: in C++, `mallard::checked<mallard::heap>` names the block and its last "
               "calls\n";
        return;
    }
    out << "  help: ";
    if (os::find_checked_malloc(path, sizeof path))
        out << "LD_PRELOAD=" << path
            << " names the block, with MALLARD_CALLS=1 also its last calls; or ";
    out << "use `valgrind` or -fsanitize=address without this malloc\n";
}

/// Prints "mallard: ", `what`, the address `p` and `state`, and stops the process. Unless
/// `has_help` is true, because `state` already contains a help line, also prints a help line for
/// `p`.
[[noreturn]] void stop(const char* what, const void* p, const char* state,
                       bool has_help = false) noexcept
{
    char text[768];
    text_writer out{text, sizeof text};
    out << "mallard: " << what << p << state;
    if (!has_help)
        write_help(out, p);
    os::write_error(text, out.written());
    std::abort();
}

/// Stops the process because of a call of the function `call` with the argument `p`.
[[noreturn]] void stop_at_call(const char* call, const void* p, const char* state) noexcept
{
    char what[64];
    text_writer out{what, sizeof what};
    out << call << " of " << '\0';
    stop(what, p, state);
}

} // namespace

void stop_at_double_free(const void* block, const char* call) noexcept
{
    if (call[0] == 'f')
        stop("double free of ", block,
             "\n  the block was free already; this call changed nothing\n");
    stop_at_call(call, block,
                 ", which is free\n  the block was free already; this call changed nothing\n");
}

void stop_at_interior(const void* p, const char* call) noexcept
{
    stop_at_call(call, p,
                 ", which is inside a block\n"
                 "  no block begins there; this call changed nothing\n");
}

void stop_at_foreign(const void* p, const char* call) noexcept
{
    stop_at_call(
        call, p,
        ", which is not a block of malloc\n"
        "  another malloc allocated it, as in a library that has its own or was loaded with "
        "RTLD_DEEPBIND, or its memory was released; this call changed nothing\n");
}

void stop_at_wrong_size(const void* block, std::size_t said, std::size_t bytes) noexcept
{
    char state[160];
    text_writer out{state, sizeof state};
    out << " is freed with another size than its own\n  the caller passed " << said
        << " bytes, the block has " << bytes << "; this call changed nothing\n"
        << '\0';
    stop("", block, state);
}

void stop_at_confined(const void* heap) noexcept
{
    stop("the confined heap ", heap,
         " is used for an allocation by another thread\n"
         "  only the owner thread may allocate, any may free; nothing was allocated\n"
         "  help: call adopt() in the thread that uses it from now on, or make it a "
         "shared_heap\n",
         true);
}

void stop_at_destroyed(const void* heap) noexcept
{
    stop("mallard_heap_destroy of ", heap,
         ", which is not a heap\n"
         "  the heap was destroyed already; this call changed nothing\n"
         "  help: set the pointer to NULL after the first call\n",
         true);
}

void stop_at_damaged_list(const void* block) noexcept
{
    if (static_cast<const std::uint64_t*>(block)[0] == 0) // cleared, as in an allocated block
        stop("double free of ", block,
             "\n  malloc was about to allocate it again, or the program cleared its first word "
             "after the free\n");
    stop("the list of free blocks is corrupt at ", block,
         "\n  the program wrote into that block after the free, or beyond the end of the block "
         "before it, or freed it twice\n");
}

} // namespace mallard::engine
