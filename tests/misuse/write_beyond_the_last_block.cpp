// asan: use-after-poison
#include <mallard/arena.hpp>

int main()
{
    mallard::arena<> scratch;
    auto* const block = static_cast<volatile char*>(scratch.allocate(40));
    block[40] = 1;
}
