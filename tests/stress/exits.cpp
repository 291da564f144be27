// Threads that exit: frees in destructors of thread-local objects and of pthread keys, and blocks
// that outlive their thread.
#include "../support/kinds.hpp"
#include "../support/mapped_source.hpp"
#include "../support/market.hpp"
#include "../support/tsan.hpp"

#include <atomic>
#include <functional>

#include <pthread.h>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr pool_options small_steps{
    .chunk = 4096, .grow = growth::fixed(4096), .cached_bytes = 4096};
constexpr std::size_t threads_in_turn = 300;

/// A thread-local object that calls a function when its thread exits.
struct at_exit {
    std::function<void()> call;
    ~at_exit()
    {
        if (call)
            call();
    }
};

template <class Kind>
class ending_threads : public ::testing::Test {
protected:
    using pool_type = typename Kind::template pool<small_steps, ref<mapped_source>>;

    /// Expects the memory of at most two thread caches: the cache of the current thread, and the
    /// cache of the main thread.
    void expect_little_memory() { EXPECT_LE(pages.bytes(), 2 * 3 * 4096U); }

    mapped_source pages;
    std::unique_ptr<pool_type> pool = std::make_unique<pool_type>(64, 0, pages);
};
TYPED_TEST_SUITE(ending_threads, growing_kinds, kind_names);

TYPED_TEST(ending_threads, may_use_the_pool_for_the_first_time)
{
    for (std::size_t i = 0; i < threads_in_turn; ++i)
        in_a_thread([&] {
            static thread_local at_exit last;
            last.call = [&] { this->pool->deallocate(this->pool->allocate()); };
        });
    EXPECT_EQ(this->pool->stats().blocks_live, 0U);
    this->expect_little_memory();
}

TYPED_TEST(ending_threads, may_free_and_allocate_after_the_thread_cache_is_abandoned)
{
    for (std::size_t i = 0; i < threads_in_turn; ++i)
        in_a_thread([&] {
            static thread_local at_exit last; // constructed first, and so destroyed last
            void* const block = this->pool->allocate();
            last.call = [&, block] {
                this->pool->deallocate(block);
                this->pool->deallocate(this->pool->allocate());
            };
        });
    EXPECT_EQ(this->pool->stats().blocks_live, 0U);
    this->expect_little_memory();
}

TYPED_TEST(ending_threads, may_free_in_the_destructors_of_pthread_keys)
{
    static typename TestFixture::pool_type* used;
    used = this->pool.get();
    pthread_key_t key;
    ASSERT_EQ(::pthread_key_create(&key, [](void* block) { used->deallocate(block); }), 0);
    for (std::size_t i = 0; i < threads_in_turn; ++i)
        in_a_thread([&] { ::pthread_setspecific(key, used->allocate()); });
    ::pthread_key_delete(key);
    EXPECT_EQ(used->stats().blocks_live, 0U);
    this->expect_little_memory();
}

TYPED_TEST(ending_threads, may_free_in_the_destructors_of_pthread_keys_that_are_set_again)
{
    static typename TestFixture::pool_type* used;
    static pthread_key_t key;
    static thread_local int left;
    used = this->pool.get();
    auto const again = [](void* block) {
        used->deallocate(block);
        if (--left > 0) // sets the key again in every round of pthread destructors
            ::pthread_setspecific(key, used->allocate());
    };
    ASSERT_EQ(::pthread_key_create(&key, again), 0);
    for (std::size_t i = 0; i < threads_in_turn; ++i)
        in_a_thread([&] {
            // Before the last round, ThreadSanitizer deletes its own state of the thread.
            left = PTHREAD_DESTRUCTOR_ITERATIONS - (has_tsan() ? 1 : 0);
            ::pthread_setspecific(key, used->allocate());
        });
    ::pthread_key_delete(key);
    EXPECT_EQ(used->stats().blocks_live, 0U);
    this->expect_little_memory();
}

TYPED_TEST(ending_threads, leave_blocks_that_other_threads_free)
{
    for (std::size_t i = 0; i < threads_in_turn; ++i) {
        std::vector<stamped> blocks;
        in_a_thread([&] {
            for (std::size_t serial = 0; serial < 50; ++serial)
                blocks.emplace_back(this->pool->allocate(), layout(64), i, serial);
            for (int freed = 0; freed < 20; ++freed) {
                this->pool->deallocate(blocks.back().verified());
                blocks.pop_back();
            }
            ::pthread_exit(nullptr);
        });
        for (stamped const& block : blocks)
            this->pool->deallocate(block.verified());
    }
    EXPECT_EQ(this->pool->stats().blocks_live, 0U);
    this->expect_little_memory();
}

/// A source that can fail by throwing an exception, or by terminating the calling thread.
class abrupt_source : public mapped_source {
public:
    chunk try_take(layout l) noexcept { return refuses ? chunk{} : mapped_source::try_take(l); }
    chunk take(layout l)
    {
        if (refuses && ends_threads)
            ::pthread_exit(nullptr);
        if (refuses)
            throw refusal{l.bytes, l.align};
        return mapped_source::try_take(l);
    }

    std::atomic<bool> refuses = false;
    std::atomic<bool> ends_threads = false;
};

TYPED_TEST(ending_threads, a_thread_that_exits_inside_the_source_leaves_no_lock_held)
{
    using abrupt_pool = typename TypeParam::template pool<small_steps, ref<abrupt_source>>;
    abrupt_source source;
    auto const abrupt = std::make_unique<abrupt_pool>(64, 0, ref<abrupt_source>(source));
    std::vector<void*> of_others(300);
    in_a_thread([&] { abrupt->allocate_batch(of_others); });
    std::atomic<bool> stop = false;
    std::jthread const goes_on([&] {
        for (std::size_t i = 0; !stop; ++i) {
            void*& block = of_others[i % of_others.size()];
            if (block != nullptr)
                abrupt->deallocate(block);
            block = abrupt->try_allocate();
        }
    });
    for (std::size_t i = 0; i < 100; ++i) {
        source.ends_threads = i % 2 == 0;
        in_a_thread([&] {
            struct free_at_exit { // frees also when an exception or pthread_exit unwinds the thread
                abrupt_pool& to;
                std::vector<void*> blocks{};
                ~free_at_exit() { to.deallocate_batch(blocks); }
            } mine{*abrupt};
            source.refuses = true;
            try {
                for (;;)
                    mine.blocks.push_back(abrupt->allocate());
            } catch (const refusal&) {
                EXPECT_FALSE(source.ends_threads);
            }
        });
        source.refuses = false;
        in_a_thread([&] { abrupt->deallocate(abrupt->allocate()); });
    }
    stop = true;
}

} // namespace
