// asan: use-after-poison
#include <mallard/multipool.hpp>

int main()
{
    mallard::multipool<> memory;
    auto* const block = static_cast<volatile char*>(memory.allocate(64));
    block[0] = 1;
    return block[64];
}
