// asan: use-after-poison
#include <mallard/pool.hpp>

int main()
{
    mallard::pool<> blocks(64);
    auto* const block = static_cast<volatile char*>(blocks.allocate());
    block[8] = 1;
    blocks.deallocate(const_cast<char*>(block));
    return block[8];
}
