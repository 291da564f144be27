// Threads come and go by the thousand, with blocks in flight: what they had goes to
// those who come after them.
#include "../support/kinds.hpp"
#include "../support/market.hpp"

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t block_bytes = 64;
constexpr std::size_t array_entries = 64; // of one thread, at most

/// In chunks of one page, for which the source is asked one by one.
constexpr pool_options small_steps{
    .chunk = 4096, .grow = growth::fixed(4096), .cached_bytes = array_entries * block_bytes};

/// Pages that hold `blocks`; headers leave room for 48 in each, in all modes.
constexpr std::size_t pages_for(std::size_t blocks)
{
    return (blocks + 47) / 48;
}

template <class Kind>
class shared_births : public ::testing::Test {
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
TYPED_TEST_SUITE(shared_births, growing_kinds, kind_names);

TYPED_TEST(shared_births, of_threads_one_after_the_other_cost_no_memory)
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
    EXPECT_EQ(this->heap.calls(), calls) << "the twentieth has met all that there is";
    this->give(left_behind);
    EXPECT_EQ(this->pool->stats().blocks_live, 0U);
}

TYPED_TEST(shared_births, of_many_threads_at_a_time_cost_what_so_many_need)
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

    // A front takes a chunk only when it has no free block, nor has any of the dead:
    // then others have `array_entries` at hand at most, and what is left of their
    // chunks, which once were as few as that of their thread.
    std::size_t const live_max = at_a_time * each_holds + 64;
    std::size_t const fronts = at_a_time + 1; // this thread's, too
    std::size_t const pages = fronts * pages_for(live_max + fronts * array_entries);
    EXPECT_LE(this->heap.bytes_peak(), pages * 4096 + fronts * 2048);
}

} // namespace
