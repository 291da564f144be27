// A shared object that stress/modules.cpp loads. It has a pool and its own copy of the library.
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

namespace {

constinit mallard::pool<mallard::default_heap,
                        mallard::pool_options{.block = 64, .threads = mallard::sync::thread_cached}>
    blocks;

} // namespace

extern "C" {

[[gnu::visibility("default")]] void* module_allocate()
{
    return blocks.try_allocate();
}
[[gnu::visibility("default")]] void module_deallocate(void* block)
{
    blocks.deallocate(block);
}
[[gnu::visibility("default")]] std::size_t module_blocks_live()
{
    return blocks.stats().blocks_live;
}
}
