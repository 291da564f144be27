// A library, preloaded after the recorder, whose operators new and delete call malloc and free.
// They are not the operators of a C++ runtime.
#include <cstddef>
#include <cstdlib>
#include <new>

void* operator new(std::size_t bytes)
{
    void* const block = std::malloc(bytes);
    if (block == nullptr)
        throw std::bad_alloc();
    return block;
}
void operator delete(void* block) noexcept
{
    std::free(block);
}
void operator delete(void* block, std::size_t) noexcept
{
    std::free(block);
}
