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
    "  help: LD_PRELOAD=libmallard-checked.so says which block it is, with MALLARD_CALLS=1 who had "
    "it; or use `valgrind` or -fsanitize=address\n";

} // namespace

void stop_at_double_free(const void* block, const char* call) noexcept
{
    message m;
    if (call[0] == 'f')
        m.out << "mallard: double free of " << block << '\n';
    else
        m.out << "mallard: " << call << " of " << block << ", which is free\n";
    m.out << "  the block was free already, this call changed nothing; the program has a stale "
             "pointer\n"
          << help;
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
          << "  it was not allocated here, or was given back whole; this call changed nothing\n"
          << help;
    m.stop();
}

void stop_at_wrong_size(const void* block, std::size_t said, std::size_t bytes) noexcept
{
    message m;
    m.out << "mallard: " << block << " is freed with another size than it has\n"
          << "  it was said to have " << said << " bytes, and has " << bytes
          << "; this call changed nothing\n"
          << "  help: delete an object as the type that it was made as; "
             "LD_PRELOAD=libmallard-checked.so MALLARD_CALLS=1 says where it was made\n";
    m.stop();
}

void stop_at_confined(const void* heap) noexcept
{
    message m;
    m.out << "mallard: the confined heap " << heap << " is asked for memory by another thread\n"
          << "  one thread allocates from it, any may free; nothing was allocated\n"
          << "  help: call adopt() in the thread that goes on with it, or make it a "
             "shared_heap\n";
    m.stop();
}

void stop_at_damaged_list(const void* block) noexcept
{
    message m;
    if (static_cast<const std::uint64_t*>(block)[0] == 0) // as it is when it was handed out
        m.out << "mallard: double free of " << block << '\n'
              << "  it would be handed out a second time now, or somebody cleared its first word "
                 "after it was freed\n";
    else
        m.out << "mallard: the list of free blocks is damaged at " << block << '\n'
              << "  somebody wrote into that block after it was freed, or beyond the end of the "
                 "one before it, or freed it twice\n";
    m.out << help;
    m.stop();
}

} // namespace mallard::engine
