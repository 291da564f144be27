// asan: use-after-poison
#include <mallard/arena.hpp>

int main()
{
    mallard::arena<> scratch;
    auto* const block = static_cast<volatile char*>(scratch.allocate(64));
    block[8] = 1;
    scratch.reset();
    return block[8];
}
