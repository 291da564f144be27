// While one thread grows a pool, the others go on.
#include "../support/gated_source.hpp"
#include "../support/kinds.hpp"

namespace {

using namespace mallard::testing;
using namespace mallard;
using namespace std::chrono_literals;

constexpr pool_options small_steps{.chunk = 4096, .grow = growth::fixed(4096)};

/// One thread is inside the source when a test begins, and stays there until its end.
template <class Kind>
class shared_growth : public ::testing::Test {
protected:
    using pool_type = typename Kind::template pool<small_steps, ref<gated_source>>;

    shared_growth()
    {
        in_a_thread([this] { strangers = some(10); });
        other([this] { blocks = some(20); });
        other([this] { give(5); }); // which it has at hand now
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

    /// Whether `thread` is done with `f` before the source is done.
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
        bool const ended = end.opens_within(5s);
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

TYPED_TEST(shared_growth, lets_another_thread_free_what_the_growing_one_has_allocated)
{
    EXPECT_TRUE(this->ends_meanwhile(this->other, [&] {
        std::lock_guard const alone(this->lock);
        for (; this->strangers.size() > 10; this->strangers.pop_back())
            this->pool->deallocate(this->strangers.back());
    }));
}

TYPED_TEST(shared_growth, lets_another_thread_allocate_where_blocks_are_free)
{
    EXPECT_TRUE(this->ends_meanwhile(this->other, [&] {
        this->give(10);
        void* const block = this->pool->allocate();
        this->pool->deallocate(block);
    }));
}

TYPED_TEST(shared_growth, lets_another_thread_allocate_a_batch_where_blocks_are_free)
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

TYPED_TEST(shared_growth, lets_another_thread_ask)
{
    EXPECT_TRUE(this->ends_meanwhile(this->other, [&] {
        EXPECT_TRUE(this->pool->owns(this->blocks[0]));
        EXPECT_EQ(this->pool->classify(this->blocks[0]), validity::valid);
        EXPECT_GE(this->pool->stats().blocks_live, this->blocks.size());
    }));
}

/// What is freed while the source says no, and nothing else is free, goes to the
/// thread that the source said it to.
template <class Kind>
class shared_refusal : public ::testing::Test {
protected:
    using pool_type = typename Kind::template pool<small_steps, ref<gated_source>>;

    shared_refusal()
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
TYPED_TEST_SUITE(shared_refusal, growing_kinds, kind_names);

TYPED_TEST(shared_refusal, sees_what_another_thread_frees_of_its_own_meanwhile)
{
    this->expect_given(this->of_second);
}

TYPED_TEST(shared_refusal, sees_what_another_thread_frees_of_the_askers_meanwhile)
{
    this->expect_given(this->of_first);
}

} // namespace
