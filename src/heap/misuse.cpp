#include "misuse.hpp"

#include "../os/system.hpp"

#include <mallard/detail/base/text.hpp>

#include <cstdlib>

namespace mallard::engine {
namespace {

struct message {
    char text[512];
    text_writer out{text, sizeof text};

    [[noreturn]] void stop() noexcept
    {
        os::write_error(text, out.written());
        std::abort();
    }
};

constexpr const char* help =
    "  help: LD_PRELOAD=libmallard-checked.so names the block, with MALLARD_CALLS=1 also its last "
    "calls; or use `valgrind` or -fsanitize=address\n";

} // namespace

void stop_at_double_free(const void* block, const char* call) noexcept
{
    message m;
    if (call[0] == 'f')
        m.out << "mallard: double free of " << block << '\n';
    else
        m.out << "mallard: " << call << " of " << block << ", which is free\n";
    m.out << "  the block was free already; this call changed nothing\n" << help;
    m.stop();
}

void stop_at_interior(const void* p, const char* call) noexcept
{
    message m;
    m.out << "mallard: " << call << " of " << p << ", which is inside a block\n"
          << "  no block begins there; this call changed nothing\n"
          << "  help: pass the pointer that malloc returned; LD_PRELOAD=libmallard-checked.so says "
             "inside which block it is\n";
    m.stop();
}

void stop_at_foreign(const void* p, const char* call) noexcept
{
    message m;
    m.out << "mallard: " << call << " of " << p << ", which is not a block of malloc\n"
          << "  it was not allocated here, or its memory was released; this call changed nothing\n"
          << help;
    m.stop();
}

void stop_at_wrong_size(const void* block, std::size_t said, std::size_t bytes) noexcept
{
    message m;
    m.out << "mallard: " << block << " is freed with another size than it has\n"
          << "  the caller says " << said << " bytes, the block has " << bytes
          << "; this call changed nothing\n"
          << "  help: delete an object as the type that was allocated; "
             "LD_PRELOAD=libmallard-checked.so MALLARD_CALLS=1 says where that was\n";
    m.stop();
}

void stop_at_confined(const void* heap) noexcept
{
    message m;
    m.out << "mallard: the confined heap " << heap << " is asked for memory by another thread\n"
          << "  one thread may allocate from it, any may free; nothing was allocated\n"
          << "  help: call adopt() in the thread that uses it from now on, or make it a "
             "shared_heap\n";
    m.stop();
}

void stop_at_damaged_list(const void* block) noexcept
{
    message m;
    if (static_cast<const std::uint64_t*>(block)[0] == 0) // cleared, as in an allocated block
        m.out << "mallard: double free of " << block << '\n'
              << "  malloc was about to allocate it again, or the program cleared its first word "
                 "after "
                 "the free\n";
    else
        m.out << "mallard: the list of free blocks is damaged at " << block << '\n'
              << "  the program wrote into that block after the free, or beyond the end of the "
                 "block before it, or freed it twice\n";
    m.out << help;
    m.stop();
}

} // namespace mallard::engine
