// valgrind: Invalid write
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 64, .order = reuse::ordered, .checks = check::on}>
        blocks;
    auto* const block = static_cast<volatile char*>(blocks.allocate());
    blocks.deallocate(const_cast<char*>(block));
    block[8] = 1;
}
