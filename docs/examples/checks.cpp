// Finds addresses that are not live blocks of a pool.
#include <mallard/pool.hpp>

#include <cassert>

int main()
{
    constexpr mallard::pool_options checked{.block = 48, .checks = mallard::check::on};
    mallard::pool<mallard::default_heap, checked> blocks;

    auto* const block = static_cast<std::byte*>(blocks.allocate());
    assert(blocks.owns(block + 8));
    assert(blocks.classify(block) == mallard::validity::valid);
    assert(blocks.classify(block + 8) == mallard::validity::invalid); // inside a block
    blocks.deallocate(block);
    assert(blocks.classify(block) == mallard::validity::invalid); // free
    int elsewhere = 0;
    assert(blocks.classify(&elsewhere) == mallard::validity::miss);
}
