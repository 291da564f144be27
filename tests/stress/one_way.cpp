// One thread allocates and another frees, for long: no more memory than for what is
// on its way between them.
#include "../support/kinds.hpp"
#include "../support/market.hpp"

#include <semaphore>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t on_the_way = 1000;
constexpr std::size_t block_bytes = 64;
constexpr std::size_t array_entries = 256;
constexpr pool_options small_steps{
    .chunk = 4096, .grow = growth::fixed(4096), .cached_bytes = array_entries * block_bytes};

/// For one who puts and one who takes.
class queue {
public:
    void put(stamped block)
    {
        room_.acquire();
        places_[last_++ % on_the_way] = block;
        there_.release();
    }
    stamped take()
    {
        there_.acquire();
        stamped const block = places_[first_++ % on_the_way];
        room_.release();
        return block;
    }

private:
    std::array<stamped, on_the_way> places_;
    std::size_t first_ = 0, last_ = 0;
    std::counting_semaphore<> room_{on_the_way}, there_{0};
};

template <class Kind>
class one_way : public ::testing::Test {
protected:
    using small_pool = typename Kind::template pool<small_steps>;

    /// Bytes of pages, tables and arrays for so many blocks; headers leave room for 48
    /// in each page, in all modes.
    static constexpr std::size_t bytes_for(std::size_t blocks)
    {
        return (blocks + 47) / 48 * 4096 + 8192;
    }

    failing_source heap;
};
TYPED_TEST_SUITE(one_way, growing_kinds, kind_names);

TYPED_TEST(one_way, of_blocks_takes_memory_for_those_on_the_way)
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
    // Beyond what is on the way, and in the hands of the two, only the one who frees
    // has blocks at hand when the pool grows: an array full, and a new one half.
    std::size_t const at_hand = TypeParam::threads == sync::thread_cached ? array_entries : 0;
    EXPECT_LE(this->heap.bytes_peak(), this->bytes_for(on_the_way + 2 + at_hand));
}

TYPED_TEST(one_way, through_a_thread_that_only_allocates_ends_where_it_began)
{
    auto const pool =
        std::make_unique<typename TestFixture::small_pool>(block_bytes, 0, this->heap);
    puppet one, other;
    std::vector<void*> blocks(500);
    for (int round = 0; round < 200; ++round) {
        (round % 2 == 0 ? one : other)([&] { pool->allocate_batch(blocks); });
        (round % 2 == 0 ? other : one)([&] { pool->deallocate_batch(blocks); });
    }
    // Each of two threads has chunks of its own for all that it ever had in use.
    std::size_t const fronts = TypeParam::threads == sync::thread_cached ? 2 : 1;
    EXPECT_LE(this->heap.bytes_peak(), fronts * this->bytes_for(500 + array_entries));
}

} // namespace
