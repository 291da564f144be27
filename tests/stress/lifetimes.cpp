// Tests pools and threads that end in any order, pools at the address of a destroyed pool, and
// threads that use more pools than their table of thread caches has places for.
#include "../support/kinds.hpp"
#include "../support/market.hpp"

#include <list>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr pool_options small_steps{
    .chunk = 4096, .grow = growth::fixed(4096), .cached_bytes = 4096};

template <class Kind>
class shared_lifetimes : public ::testing::Test {
protected:
    using small_pool = typename Kind::template pool<small_steps>;

    /// Allocates 100 blocks, frees 70 of the blocks in `blocks`, and leaves the others in use.
    static void use(small_pool& pool, std::vector<stamped>& blocks, std::size_t number)
    {
        for (std::size_t i = 0; i < 100; ++i)
            blocks.emplace_back(pool.allocate(), layout(64), number, i);
        for (std::size_t i = 0; i < 70; ++i) {
            std::swap(blocks[7 * i % blocks.size()], blocks.back());
            pool.deallocate(blocks.back().verified());
            blocks.pop_back();
        }
    }

    failing_source heap;
};
TYPED_TEST_SUITE(shared_lifetimes, shared_kinds, kind_names);

TYPED_TEST(shared_lifetimes, allow_a_new_pool_at_the_address_of_an_old_one_while_threads_live_on)
{
    std::array<puppet, 3> threads;
    std::unique_ptr<std::optional<typename TestFixture::small_pool>> const place =
        std::make_unique<std::optional<typename TestFixture::small_pool>>();
    for (std::size_t life = 0; life < rounds(300); ++life) {
        place->emplace(64U, 0U, this->heap);
        std::vector<stamped> blocks;
        for (std::size_t i = 0; i < threads.size(); ++i)
            if ((life + i) % 3 != 0) // some threads do not use this pool
                threads[i]([&] { this->use(**place, blocks, i); });
        EXPECT_EQ((*place)->stats().blocks_live, blocks.size());
        for (stamped const& block : blocks)
            block.verified();
        if (life % 4 == 0) {
            (*place)->release();
            EXPECT_EQ(this->heap.bytes(), 0U);
            blocks.clear();
            threads[life % 3]([&] { this->use(**place, blocks, 0); });
        }
        place->reset();
        EXPECT_EQ(this->heap.bytes(), 0U);
    }
}

TYPED_TEST(shared_lifetimes, allow_the_destruction_of_a_pool_while_its_threads_exit)
{
    for (std::size_t life = 0; life < rounds(300); ++life) {
        auto pool = std::make_unique<typename TestFixture::small_pool>(64U, 0U, this->heap);
        std::vector<std::jthread> threads;
        std::latch done(2);
        for (std::size_t i = 0; i < 2; ++i)
            threads.emplace_back([&, i] {
                std::vector<stamped> blocks;
                this->use(*pool, blocks, i);
                done.count_down(); // this thread exits after this call
            });
        done.wait();
        pool.reset();
        EXPECT_EQ(this->heap.bytes(), 0U);
    }
}

TYPED_TEST(shared_lifetimes, allow_a_thread_to_use_200_pools)
{
    using pool_type = typename TypeParam::template pool<small_steps, default_heap>;
    std::list<pool_type> pools;
    for (int i = 0; i < 200; ++i)
        pools.emplace_back(64U);
    std::vector<pool_type*> all;
    for (pool_type& pool : pools)
        all.push_back(&pool);
    in_threads(3, [&](std::size_t number) {
        seeded choose(number);
        std::vector<std::vector<stamped>> blocks(all.size());
        for (std::size_t i = 0; i < rounds(40'000); ++i) {
            std::size_t const at = choose(all.size());
            if (blocks[at].empty() || choose(2) == 0) {
                blocks[at].emplace_back(all[at]->allocate(), layout(64), number, i);
            } else {
                all[at]->deallocate(blocks[at].back().verified());
                blocks[at].pop_back();
            }
        }
        for (std::size_t at = 0; at < all.size(); ++at)
            for (stamped const& block : blocks[at])
                all[at]->deallocate(block.verified());
    });
    for (pool_type* const pool : all) {
        EXPECT_EQ(pool->stats().blocks_live, 0U);
        pool->trim();
        EXPECT_EQ(pool->stats().bytes_taken, 0U);
    }
}

TYPED_TEST(shared_lifetimes, allow_1000_successive_pools_next_to_a_permanent_one)
{
    using pool_type = typename TypeParam::template pool<small_steps, default_heap>;
    pool_type kept(64);
    std::vector<stamped> blocks;
    for (std::size_t i = 0; i < 1000; ++i) {
        pool_type one(64);
        blocks.emplace_back(kept.allocate(), layout(64), 1, i);
        stamped const other(one.allocate(), layout(64), 2, i);
        one.deallocate(other.verified());
    }
    EXPECT_EQ(kept.stats().blocks_live, blocks.size());
    for (stamped const& block : blocks)
        kept.deallocate(block.verified());
    EXPECT_EQ(kept.stats().blocks_live, 0U);
}

/// `for_each`, `reset` and `release` require that no other thread is inside a call. Any thread may
/// call them.
TYPED_TEST(shared_lifetimes, allow_any_thread_to_visit_reset_and_release)
{
    auto const pool = std::make_unique<typename TestFixture::small_pool>(64U, 0U, this->heap);
    std::array<puppet, 3> threads;
    for (std::size_t round = 0; round < 30; ++round) {
        std::vector<stamped> blocks;
        for (std::size_t i = 0; i < threads.size(); ++i)
            threads[i]([&] { this->use(*pool, blocks, i); });
        threads[round % 3]([&] {
            std::size_t seen = 0;
            pool->for_each([&](void* block) {
                if (++seen % 2 == 0)
                    pool->deallocate(block);
            });
            EXPECT_EQ(seen, blocks.size());
        });
        EXPECT_EQ(pool->stats().blocks_live, (blocks.size() + 1) / 2);
        threads[(round + 1) % 3]([&] { pool->reset(); });
        EXPECT_EQ(pool->stats().blocks_live, 0U);
        std::size_t const held = this->heap.bytes();
        blocks.clear();
        threads[(round + 2) % 3]([&] { this->use(*pool, blocks, 7); });
        EXPECT_LE(this->heap.bytes(), held + 1024) << "at most a thread cache and its array";
        threads[round % 3]([&] { pool->release(); });
        EXPECT_EQ(this->heap.bytes(), 0U);
    }
}

} // namespace
