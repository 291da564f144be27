// dies: mallard: free of ADDRESS, which is not a block of this pool
#include <mallard/pool.hpp>

int main()
{
    using namespace mallard;
    pool<default_heap, pool_options{.block = 48, .order = reuse::ordered, .checks = check::on}>
        blocks;
    // The header of a chunk lies between two of its blocks, so these two neighbours are not
    // contiguous.
    auto* before = static_cast<char*>(blocks.allocate());
    for (int i = 0; i < 5000; ++i) {
        auto* const next = static_cast<char*>(blocks.allocate());
        if (next > before && next != before + 48)
            blocks.deallocate(before + 48);
        before = next;
    }
}
