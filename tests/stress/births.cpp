// Thousands of threads start and exit while blocks are in use. New threads reuse the caches of
// exited threads, so memory stays bounded.
#include "../support/kinds.hpp"
#include "../support/market.hpp"

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t block_bytes = 64;
constexpr std::size_t array_entries = 64; // maximum number of cached blocks of a thread

/// Options for chunks of one page. The pool requests one chunk at a time.
constexpr pool_options small_steps{
    .chunk = 4096, .grow = growth::fixed(4096), .cached_bytes = array_entries * block_bytes};

/// Returns the number of pages that hold `blocks` blocks. Headers leave room for 48 blocks in a
/// page, in all modes.
constexpr std::size_t pages_for(std::size_t blocks)
{
    return (blocks + 47) / 48;
}

template <class Kind>
class short_threads : public ::testing::Test {
protected:
    using small_pool = typename Kind::template pool<small_steps>;

    std::vector<void*> take(std::size_t count)
    {
        std::vector<void*> taken(count);
        for (void*& block : taken)
            block = pool->allocate();
        return taken;
    }
    void give(const std::vector<void*>& blocks)
    {
        for (void* const block : blocks)
            pool->deallocate(block);
    }

    failing_source heap;
    std::unique_ptr<small_pool> pool = std::make_unique<small_pool>(block_bytes, 0, heap);
};
TYPED_TEST_SUITE(short_threads, growing_kinds, kind_names);

TYPED_TEST(short_threads, successive_threads_reuse_the_same_memory)
{
    std::vector<void*> left_behind = this->take(100);
    std::size_t calls = 0;
    for (int birth = 0; birth < 1000; ++birth) {
        in_a_thread([&] {
            std::vector<void*> const mine = this->take(100);
            this->give(left_behind);
            left_behind = mine;
        });
        if (birth == 20)
            calls = this->heap.calls();
    }
    EXPECT_EQ(this->heap.calls(), calls)
        << "the first 20 threads took all memory that later ones need";
    this->give(left_behind);
    EXPECT_EQ(this->pool->stats().blocks_live, 0U);
}

TYPED_TEST(short_threads, four_at_a_time_use_memory_for_at_most_five_threads)
{
    constexpr std::size_t at_a_time = 4;
    constexpr std::size_t each_holds = 100;
    {
        market between;
        for (std::size_t births = 0; births < rounds(2000); births += at_a_time)
            in_threads(at_a_time, [&](std::size_t number) {
                std::vector<stamped> mine;
                for (std::size_t i = 0; i < each_holds; ++i)
                    mine.emplace_back(this->pool->allocate(), layout(block_bytes), number, i);
                for (std::size_t i = 0; i < each_holds; ++i)
                    if (stamped const old = between.swap((7 * i + number) % 64, mine[i]))
                        this->pool->deallocate(old.verified());
            });
        for (std::size_t at = 0; at < market::places; ++at)
            if (stamped const old = between.swap(at, {}))
                this->pool->deallocate(old.verified());
    }
    EXPECT_EQ(this->pool->stats().blocks_live, 0U);

    // A thread requests a chunk only if neither its own cache nor an abandoned cache has a free
    // block. Every other cache then has at most `array_entries` blocks in its array, and otherwise
    // only the free blocks of its own chunks.
    std::size_t const live_max = at_a_time * each_holds + 64;
    std::size_t const caches = at_a_time + 1; // the main thread has a cache too
    std::size_t const pages = caches * pages_for(live_max + caches * array_entries);
    EXPECT_LE(this->heap.bytes_peak(), pages * 4096 + caches * 2048);
}

} // namespace
