// While one thread grows a pool, other threads can allocate, free and query.
#include "../support/gated_source.hpp"
#include "../support/kinds.hpp"

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr pool_options small_steps{.chunk = 4096, .grow = growth::fixed(4096)};

/// At the beginning of each test, one thread (the grower) is inside the source. It grows the pool,
/// and stays in the source until the test ends.
template <class Kind>
class shared_growth : public ::testing::Test {
protected:
    using pool_type = typename Kind::template pool<small_steps, ref<gated_source>>;

    shared_growth()
    {
        in_a_thread([this] { strangers = some(10); });
        other([this] { blocks = some(20); });
        other([this] { give(5); }); // the blocks are now in the cache of `other`
        source.hold_next();
        grower = std::jthread([this] {
            while (void* const block = pool->try_allocate()) {
                std::lock_guard const alone(lock);
                strangers.push_back(block);
                if (done)
                    break;
            }
        });
        source.entered().wait();
    }
    ~shared_growth() override
    {
        {
            std::lock_guard const alone(lock);
            done = true;
        }
        source.let_go();
    }

    std::vector<void*> some(std::size_t count)
    {
        std::vector<void*> taken(count);
        for (void*& block : taken)
            block = pool->allocate();
        return taken;
    }
    void give(std::size_t count)
    {
        for (; count > 0; --count) {
            pool->deallocate(blocks.back());
            blocks.pop_back();
        }
    }

    /// Returns whether `thread` returns from `f` while the grower is still inside the source.
    template <class F>
    bool ends_meanwhile(puppet& thread, F f)
    {
        gate end;
        std::jthread const teller([&] {
            thread([&] {
                f();
                end.open();
            });
        });
        bool const ended = end.opens_in_the_end();
        if (!ended)
            source.let_go();
        return ended;
    }

    gated_source source;
    std::unique_ptr<pool_type> pool = std::make_unique<pool_type>(64, 0, source);
    std::mutex lock;
    bool done = false;
    std::vector<void*> blocks, strangers;
    puppet other;
    std::jthread grower;
};
TYPED_TEST_SUITE(shared_growth, growing_kinds, kind_names);

TYPED_TEST(shared_growth, lets_another_thread_free)
{
    EXPECT_TRUE(this->ends_meanwhile(this->other, [&] { this->give(10); }));
}

TYPED_TEST(shared_growth, lets_another_thread_free_blocks_of_the_growing_thread)
{
    EXPECT_TRUE(this->ends_meanwhile(this->other, [&] {
        std::lock_guard const alone(this->lock);
        for (; this->strangers.size() > 10; this->strangers.pop_back())
            this->pool->deallocate(this->strangers.back());
    }));
}

TYPED_TEST(shared_growth, lets_another_thread_allocate_a_free_block)
{
    EXPECT_TRUE(this->ends_meanwhile(this->other, [&] {
        this->give(10);
        void* const block = this->pool->allocate();
        this->pool->deallocate(block);
    }));
}

TYPED_TEST(shared_growth, lets_another_thread_allocate_a_batch_of_free_blocks)
{
    EXPECT_TRUE(this->ends_meanwhile(this->other, [&] {
        this->give(10);
        std::vector<void*> batch(3);
        this->pool->allocate_batch(batch);
        this->pool->deallocate_batch(batch);
    }));
}

TYPED_TEST(shared_growth, lets_a_new_thread_free)
{
    puppet newcomer;
    EXPECT_TRUE(this->ends_meanwhile(newcomer, [&] { this->give(10); }));
}

TYPED_TEST(shared_growth, lets_another_thread_query_the_pool)
{
    EXPECT_TRUE(this->ends_meanwhile(this->other, [&] {
        EXPECT_TRUE(this->pool->owns(this->blocks[0]));
        EXPECT_EQ(this->pool->classify(this->blocks[0]), validity::valid);
        EXPECT_GE(this->pool->stats().blocks_live, this->blocks.size());
    }));
}

/// All blocks are in use and the source fails. If another thread frees a block during the failing
/// call of the source, the calling thread gets that block.
template <class Kind>
class failing_growth : public ::testing::Test {
protected:
    using pool_type = typename Kind::template pool<small_steps, ref<gated_source>>;

    failing_growth()
    {
        first([this] { of_first = pool->allocate(); });
        second([this] { of_second = pool->allocate(); });
        source.refuse();
        first([this] {
            while (pool->try_allocate() != nullptr)
                ;
        });
    }

    void expect_given(void* block)
    {
        source.hold_next();
        void* given = nullptr;
        std::jthread asker([&] { first([&] { given = pool->try_allocate(); }); });
        source.entered().wait();
        second([&] { pool->deallocate(block); });
        source.let_go();
        asker.join();
        EXPECT_EQ(given, block);
    }

    gated_source source;
    std::unique_ptr<pool_type> pool = std::make_unique<pool_type>(64, 0, source);
    puppet first, second;
    void* of_first = nullptr;
    void* of_second = nullptr;
};
TYPED_TEST_SUITE(failing_growth, growing_kinds, kind_names);

TYPED_TEST(failing_growth, uses_a_block_that_another_thread_frees_into_a_chunk_of_that_thread)
{
    this->expect_given(this->of_second);
}

TYPED_TEST(failing_growth, uses_a_block_that_another_thread_frees_remotely)
{
    this->expect_given(this->of_first);
}

} // namespace
