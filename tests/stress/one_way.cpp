// One thread allocates blocks and another thread frees them, for a long time. The pool must not use
// more memory than the blocks in transit need.
#include "../support/kinds.hpp"
#include "../support/market.hpp"

#include <semaphore>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t in_transit = 1000;
constexpr std::size_t block_bytes = 64;
constexpr std::size_t array_entries = 256;
constexpr pool_options small_steps{
    .chunk = 4096, .grow = growth::fixed(4096), .cached_bytes = array_entries * block_bytes};

/// A queue with one writing thread and one reading thread.
class queue {
public:
    void put(stamped block)
    {
        room_.acquire();
        places_[last_++ % in_transit] = block;
        there_.release();
    }
    stamped take()
    {
        there_.acquire();
        stamped const block = places_[first_++ % in_transit];
        room_.release();
        return block;
    }

private:
    std::array<stamped, in_transit> places_;
    std::size_t first_ = 0, last_ = 0;
    std::counting_semaphore<> room_{in_transit}, there_{0};
};

template <class Kind>
class one_way : public ::testing::Test {
protected:
    using small_pool = typename Kind::template pool<small_steps>;

    /// Returns the bytes of the pages and arrays for `blocks` blocks. Headers leave room for 48
    /// blocks in a page, in all modes.
    static constexpr std::size_t bytes_for(std::size_t blocks)
    {
        return (blocks + 47) / 48 * 4096 + 8192;
    }

    failing_source heap;
};
TYPED_TEST_SUITE(one_way, growing_kinds, kind_names);

TYPED_TEST(one_way, traffic_uses_memory_only_for_the_blocks_in_transit)
{
    auto const pool =
        std::make_unique<typename TestFixture::small_pool>(block_bytes, 0, this->heap);
    std::size_t const count =
        rounds(TypeParam::threads == sync::thread_cached ? 2'000'000 : 500'000);
    {
        queue between;
        std::jthread const from([&] {
            for (std::size_t i = 0; i < count; ++i)
                between.put(stamped(pool->allocate(), layout(block_bytes), 0, i));
        });
        std::jthread const to([&] {
            for (std::size_t i = 0; i < count; ++i)
                pool->deallocate(between.take().verified());
        });
    }
    EXPECT_EQ(pool->stats().blocks_live, 0U);
    // The pool grows only when all blocks are in one of three places: the cache of the thread that
    // frees, with at most one full array; the queue; or the two threads, with one block each.
    std::size_t const cached = TypeParam::threads == sync::thread_cached ? array_entries : 0;
    EXPECT_LE(this->heap.bytes_peak(), this->bytes_for(in_transit + 2 + cached));
}

TYPED_TEST(one_way, traffic_that_changes_direction_uses_memory_for_two_threads_only)
{
    auto const pool =
        std::make_unique<typename TestFixture::small_pool>(block_bytes, 0, this->heap);
    puppet one, other;
    std::vector<void*> blocks(500);
    for (int round = 0; round < 200; ++round) {
        (round % 2 == 0 ? one : other)([&] { pool->allocate_batch(blocks); });
        (round % 2 == 0 ? other : one)([&] { pool->deallocate_batch(blocks); });
    }
    // Each of the two threads owns chunks for the maximum number of blocks that it ever had in use.
    std::size_t const owners = TypeParam::threads == sync::thread_cached ? 2 : 1;
    EXPECT_LE(this->heap.bytes_peak(), owners * this->bytes_for(500 + array_entries));
}

} // namespace
