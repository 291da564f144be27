// `record-news BYTES COUNT`: calls operator new and delete COUNT times for a block of BYTES bytes.
// After each fourth time, catches the bad_alloc of a block that is too large. If one of these calls
// forks, the child exits as soon as the call has returned.
#include <cstdlib>
#include <new>

#include <unistd.h>

namespace {

constexpr std::size_t too_large = std::size_t{1} << 60;
pid_t first = 0;

void exit_if_child()
{
    if (::getpid() != first)
        ::_exit(0);
}

bool fails()
{
    try {
        ::operator delete(::operator new(too_large));
    } catch (std::bad_alloc const&) {
        return true;
    }
    return false;
}

} // namespace

int main(int, char** words)
{
    first = ::getpid();
    std::size_t const bytes = std::strtoull(words[1], nullptr, 10);
    for (int left = std::atoi(words[2]); left != 0; --left) {
        void* const block = ::operator new(bytes);
        exit_if_child();
        ::operator delete(block, bytes);
        exit_if_child();
        ::operator delete(nullptr, std::size_t{7}); // must not affect later events
        if (left % 4 == 0 && !fails())
            return 1;
    }
}
