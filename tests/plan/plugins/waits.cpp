// A plugin whose constructor waits for a thread that allocates. The dynamic linker is locked
// meanwhile.
#include <cstdlib>
#include <new>

#include <pthread.h>

namespace {

void* allocate(void*)
{
    void* volatile block = std::malloc(10);
    std::free(block);
    block = std::realloc(nullptr, 40);
    std::free(block);
    block = ::operator new(20);
    ::operator delete(block);
    block = ::operator new[](20);
    ::operator delete[](block, std::size_t{20});
    block = ::operator new(20, std::nothrow);
    ::operator delete(block);
    return nullptr;
}

[[gnu::constructor]] void load()
{
    pthread_t thread;
    if (::pthread_create(&thread, nullptr, allocate, nullptr) != 0)
        std::abort();
    ::pthread_join(thread, nullptr);
}

} // namespace
