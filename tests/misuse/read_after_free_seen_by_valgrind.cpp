// valgrind: Invalid read
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 64, .order = reuse::lifo, .checks = check::on}> blocks;
    auto* const block = static_cast<volatile char*>(blocks.allocate());
    block[8] = 1;
    blocks.deallocate(const_cast<char*>(block));
    return block[8];
}
