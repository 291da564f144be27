// asan: use-after-poison
#include <mallard/arena.hpp>

int main()
{
    mallard::arena<> scratch;
    volatile char* block = nullptr;
    {
        mallard::scope frame(scratch);
        block = static_cast<volatile char*>(scratch.allocate(100'000));
        block[50'000] = 1;
    }
    return block[50'000];
}
