// Blocks that a signal handler allocates and frees. That is safe because a lock_free pool never
// waits.
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <cassert>
#include <csignal>

namespace {

constexpr mallard::pool_options events{
    .block = 64, .grow = mallard::growth::none(1 << 16), .threads = mallard::sync::lock_free};
constinit mallard::pool<mallard::default_heap, events> event_blocks;

} // namespace

int main()
{
    event_blocks.deallocate(event_blocks.allocate()); // takes the only chunk in advance
    std::signal(SIGUSR1, [](int) {
        if (void* const block = event_blocks.try_allocate()) // works whatever code was interrupted
            event_blocks.deallocate(block);
    });
    std::raise(SIGUSR1);
    assert(event_blocks.stats().blocks_live == 0);
}
