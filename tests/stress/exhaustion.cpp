// A pool at its limit can allocate all its blocks, whichever threads call it.
#include "../support/kinds.hpp"
#include "../support/threads.hpp"

#include <atomic>
#include <barrier>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t threads = 4;

/// Chunks that hold the same number of blocks at any address.
constexpr pool_options limited{.chunk = 4096, .grow = {.first = 8192, .limit = 300'000}};
constexpr pool_options small_steps{.chunk = 4096, .grow = growth::fixed(4096)};
constexpr std::size_t block_bytes = 64;

template <class Kind>
class shared_exhaustion : public ::testing::Test {
protected:
    using small_pool = typename Kind::template pool<limited>;

    struct alignas(cache_line_bytes) mine {
        std::vector<void*> blocks;
    };

    static std::size_t one_thread_gets()
    {
        failing_source heap;
        small_pool alone(block_bytes, 0, heap);
        std::size_t count = 0;
        while (alone.try_allocate() != nullptr)
            ++count;
        return count;
    }

    std::size_t allocated() const
    {
        std::size_t sum = 0;
        for (mine const& m : all)
            sum += m.blocks.size();
        return sum;
    }

    /// Lets each thread allocate until an allocation fails: with exceptions, in batches, or one by
    /// one.
    void take_all(small_pool& from)
    {
        in_threads(threads, [&](std::size_t number) {
            auto& blocks = all[number].blocks;
            if (number == 0) {
                EXPECT_THROW(for (;;) blocks.push_back(from.allocate()), std::bad_alloc);
            } else if (number == 1) {
                for (void* few[7]; from.try_allocate_batch(few);)
                    blocks.insert(blocks.end(), std::begin(few), std::end(few));
            } else {
                while (void* const block = from.try_allocate())
                    blocks.push_back(block);
            }
        });
        // A batch that failed has freed its blocks again, possibly after the other threads had
        // stopped allocating.
        in_a_thread([&] {
            while (void* const block = from.try_allocate())
                all[0].blocks.push_back(block);
        });
    }

    /// Lets each thread free the blocks that another thread allocated.
    void give_all(small_pool& to)
    {
        in_threads(threads, [&](std::size_t number) {
            auto& blocks = all[(number + 1) % threads].blocks;
            if (number % 2 == 0)
                to.deallocate_batch(blocks);
            else
                for (void* const block : blocks)
                    to.deallocate(block);
            blocks.clear();
        });
    }

    void expect_all_apart()
    {
        std::vector<void*> sorted;
        for (mine const& m : all)
            sorted.insert(sorted.end(), m.blocks.begin(), m.blocks.end());
        std::sort(sorted.begin(), sorted.end());
        EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end(),
                                     [](void* a, void* b) {
                                         return static_cast<std::byte*>(a) + block_bytes >
                                                static_cast<std::byte*>(b);
                                     }),
                  sorted.end());
    }

    failing_source heap;
    std::array<mine, threads> all;
};
TYPED_TEST_SUITE(shared_exhaustion, shared_kinds, kind_names);

TYPED_TEST(shared_exhaustion, gives_several_threads_together_as_many_blocks_as_one_thread)
{
    std::size_t const expected = this->one_thread_gets();
    auto const pool =
        std::make_unique<typename TestFixture::small_pool>(block_bytes, 0, this->heap);
    for (int round = 0; round < 5; ++round) {
        this->take_all(*pool);
        EXPECT_EQ(this->allocated(), expected) << "round " << round;
        EXPECT_EQ(pool->stats().blocks_live, expected);
        this->expect_all_apart();
        this->give_all(*pool);
        EXPECT_EQ(pool->stats().blocks_live, 0U);
    }
}

TYPED_TEST(shared_exhaustion, also_allocates_the_blocks_in_the_caches_of_idle_threads)
{
    std::size_t const expected = this->one_thread_gets();
    auto const pool =
        std::make_unique<typename TestFixture::small_pool>(block_bytes, 0, this->heap);
    std::array<puppet, threads> idle;
    for (int round = 0; round < 3; ++round) {
        // A pool with thread caches could leave cached blocks and chunks in every thread that runs
        // this loop.
        for (std::size_t i = 0; i < expected; ++i)
            idle[i % threads]([&] {
                auto& blocks = this->all[i / threads % threads].blocks;
                if (void* const block = i % 7 < 4 ? pool->try_allocate() : nullptr) {
                    blocks.push_back(block);
                } else if (!blocks.empty()) {
                    pool->deallocate(blocks.back());
                    blocks.pop_back();
                }
            });
        in_a_thread([&] {
            while (void* const block = pool->try_allocate())
                this->all[0].blocks.push_back(block);
        });
        EXPECT_EQ(this->allocated(), expected) << "round " << round;
        this->expect_all_apart();
        this->give_all(*pool);
    }
}

template <class Kind>
class exhausted_source : public ::testing::Test {};
TYPED_TEST_SUITE(exhausted_source, growing_kinds, kind_names);

TYPED_TEST(exhausted_source, throws_its_own_exception_in_each_thread)
{
    using pool_type = typename TypeParam::template pool<small_steps, pmr_source>;
    failing_resource upstream;
    auto const pool = std::make_unique<pool_type>(block_bytes, 0, pmr_source(&upstream));
    std::atomic<std::size_t> refusals = 0;
    std::barrier all_have_some(threads, [&]() noexcept { upstream.source.fail_from(1); });
    in_threads(threads, [&](std::size_t) {
        std::vector<void*> blocks;
        for (std::size_t i = 0; i < 150; ++i)
            blocks.push_back(pool->allocate());
        all_have_some.arrive_and_wait();
        try {
            for (;;)
                blocks.push_back(pool->allocate());
        } catch (const refusal&) {
            refusals += 1;
        }
        for (void* const block : blocks)
            pool->deallocate(block);
    });
    EXPECT_EQ(refusals, threads);
    EXPECT_EQ(pool->stats().blocks_live, 0U);
    EXPECT_EQ(pool->stats().bytes_taken, upstream.source.bytes());
}

} // namespace
