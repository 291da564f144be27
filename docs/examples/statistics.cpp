// Statistics: what memory an allocator holds.
#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>

#include <cassert>

int main()
{
    mallard::pool<> blocks(64);
    void* const block = blocks.allocate();
    mallard::statistics const now = blocks.stats(); // walks the pool: the hot path has no counter
    assert(now.blocks_live == 1 && now.bytes_live == 64);
    assert(now.bytes_live + now.bytes_idle <= now.bytes_taken); // the rest is bookkeeping
    assert(now.chunks == 1 && now.growths == 1);
    blocks.deallocate(block);
    blocks.trim();
    assert(blocks.stats().bytes_taken == 0);
}
