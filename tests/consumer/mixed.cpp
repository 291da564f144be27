// Uses the headers and the static C library in one program.
#include <mallard/c/mallard.h>
#include <mallard/mallard.hpp>

#include <mutex>
#include <system_error>

namespace {

bool throws_bad_alloc()
{
    mallard::arena<mallard::null> empty;
    try {
        static_cast<void>(empty.allocate({100, 8}));
    } catch (const std::bad_alloc&) {
        return true;
    }
    return false;
}

bool throws_system_error()
{
    std::unique_lock<std::mutex> no_mutex;
    try {
        no_mutex.lock();
    } catch (const std::system_error&) {
        return true;
    }
    return false;
}

} // namespace

int main()
{
    mallard_arena* const scratch = mallard_arena_create(nullptr);
    bool const works = mallard_arena_allocate(scratch, 100, 8) != nullptr;
    mallard_arena_destroy(scratch);
    return works && throws_bad_alloc() && throws_system_error() ? 0 : 1;
}
