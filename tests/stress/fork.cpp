// The child of a fork can use `sync::thread_cached` pools, whatever other threads of the parent
// were doing with the pools.
#include "../support/child.hpp"
#include "../support/kinds.hpp"
#include "../support/mapped_source.hpp"
#include "../support/threads.hpp"
#include "../support/tsan.hpp"

#include <pthread.h>

namespace {

using namespace mallard::testing;
using namespace mallard;

using cached_kinds = ::testing::Types<kind<reuse::ordered, check::off, sync::thread_cached>,
                                      kind<reuse::ordered, check::on, sync::thread_cached>>;

constexpr pool_options small_steps{
    .chunk = 4096, .grow = growth::fixed(4096), .cached_bytes = 4096};
constexpr std::size_t workers = 3;
// ThreadSanitizer's shadow memory makes forks slow.
std::size_t const forks = repeated(has_tsan() ? 15 : 50, 5);

template <class Kind>
class fork_of_a_pool : public ::testing::Test {
protected:
    /// Uses the pool in the child, and frees blocks of threads that the child does not have.
    template <class Pool>
    static void use_up(std::unique_ptr<Pool>& pool, std::span<void* const> of_others)
    {
        void* some[500];
        for (int round = 0; round < 3; ++round) {
            pool->allocate_batch(some);
            for (void* const block : some)
                std::memset(block, round, pool->block_bytes());
            pool->deallocate_batch(some);
        }
        std::size_t const live = pool->stats().blocks_live;
        for (void* const block : of_others) {
            require(pool->classify(block) == validity::valid, "blocks in use stay valid");
            pool->deallocate(block);
        }
        require(pool->stats().blocks_live == live - of_others.size(), "blocks are counted");
        void* const large = pool->allocate(layout(10'000));
        pool->deallocate(large, layout(10'000));
        pool->trim();
        pool->allocate_batch(some);
        pool.reset();
    }
};
TYPED_TEST_SUITE(fork_of_a_pool, cached_kinds, kind_names);

TYPED_TEST(fork_of_a_pool, lets_the_child_use_a_pool_that_threads_were_using)
{
    using small_pool = typename TypeParam::template pool<small_steps, ref<mapped_source>>;
    mapped_source pages;
    auto pool = std::make_unique<small_pool>(64, 0, pages);
    std::vector<void*> of_others(200);
    in_a_thread([&] { pool->allocate_batch(of_others); });
    {
        at_work const goes_on(workers, [&](std::size_t, std::size_t round) {
            void* some[150];
            std::span const few(some, 1 + round % 150);
            pool->allocate_batch(few);
            pool->deallocate_batch(few);
        });
        for (std::size_t i = 0; i < forks; ++i)
            ASSERT_EQ(in_a_child([&] { this->use_up(pool, of_others); }), "fine") << "fork " << i;
    }
    EXPECT_EQ(pool->stats().blocks_live, of_others.size());
    pool->deallocate_batch(of_others);
    pool->trim();
    EXPECT_EQ(pool->stats().chunks, 0U);
}

TYPED_TEST(fork_of_a_pool, lets_the_child_use_a_pool_whose_threads_start_exit_and_trim)
{
    using small_pool = typename TypeParam::template pool<small_steps, ref<mapped_source>>;
    mapped_source pages;
    auto pool = std::make_unique<small_pool>(64, 0, pages);
    std::vector<void*> of_others(200);
    in_a_thread([&] { pool->allocate_batch(of_others); });
    {
        at_work const goes_on(workers, [&](std::size_t number, std::size_t round) {
            in_a_thread([&] {
                void* some[100];
                pool->allocate_batch(some);
                pool->deallocate_batch(some);
                if ((number + round) % 3 == 0)
                    pool->trim();
            });
        });
        for (std::size_t i = 0; i < forks; ++i)
            ASSERT_EQ(in_a_child([&] { this->use_up(pool, of_others); }), "fine") << "fork " << i;
    }
    EXPECT_EQ(pool->stats().blocks_live, of_others.size());
}

TYPED_TEST(fork_of_a_pool, lets_the_child_use_a_pool_that_allocates_large_blocks)
{
    using small_pool = typename TypeParam::template pool<small_steps, ref<mapped_source>>;
    mapped_source pages;
    auto pool = std::make_unique<small_pool>(64, 0, pages);
    {
        at_work const goes_on(workers, [&](std::size_t, std::size_t) {
            void* const large = pool->allocate(layout(5000));
            pool->deallocate(large, layout(5000));
        });
        for (std::size_t i = 0; i < forks; ++i)
            ASSERT_EQ(in_a_child([&] { this->use_up(pool, {}); }), "fine") << "fork " << i;
    }
    EXPECT_EQ(pool->stats().blocks_live, 0U);
}

/// A source that only one thread may call at a time, because the pool calls it under a lock.
struct one_by_one : mapped_source {
    static constexpr bool any_thread = false;
};

TYPED_TEST(fork_of_a_pool, lets_the_child_use_a_pool_of_large_blocks_over_a_single_threaded_source)
{
    using small_pool = typename TypeParam::template pool<small_steps, ref<one_by_one>>;
    one_by_one pages;
    auto pool = std::make_unique<small_pool>(64, 0, ref<one_by_one>(pages));
    {
        at_work const goes_on(workers, [&](std::size_t, std::size_t) {
            void* const large = pool->allocate(layout(5000));
            pool->deallocate(large, layout(5000));
        });
        for (std::size_t i = 0; i < forks; ++i)
            ASSERT_EQ(in_a_child([&] { this->use_up(pool, {}); }), "fine") << "fork " << i;
    }
    EXPECT_EQ(pool->stats().blocks_live, 0U);
}

TYPED_TEST(fork_of_a_pool, lets_the_child_use_a_pool_whose_source_is_a_multipool)
{
    using upstream = typename TypeParam::template multipool<ref<mapped_source>, 1 << 15>;
    using small_pool = typename TypeParam::template pool<small_steps, ref<upstream>>;
    mapped_source pages;
    auto from = std::make_unique<upstream>(pages);
    auto pool = std::make_unique<small_pool>(64, 0, ref<upstream>(*from));
    std::vector<void*> of_others(200);
    in_a_thread([&] { pool->allocate_batch(of_others); });
    {
        at_work const goes_on(workers, [&](std::size_t number, std::size_t) {
            in_a_thread([&] {
                void* some[100];
                pool->allocate_batch(some);
                void* const own = from->allocate(layout(1000 * (number + 1)));
                pool->deallocate_batch(some);
                pool->trim();
                from->deallocate(own, layout(1000 * (number + 1)));
            });
        });
        for (std::size_t i = 0; i < forks; ++i)
            ASSERT_EQ(in_a_child([&] {
                          this->use_up(pool, of_others);
                          from->trim();
                          from.reset();
                      }),
                      "fine")
                << "fork " << i;
    }
    EXPECT_EQ(pool->stats().blocks_live, of_others.size());
}

TYPED_TEST(fork_of_a_pool, lets_the_child_use_many_pools_that_threads_were_using)
{
    using small_pool = typename TypeParam::template pool<small_steps, ref<mapped_source>>;
    mapped_source pages;
    // ThreadSanitizer can track at most 64 locks that a thread holds at the same time.
    std::vector<std::unique_ptr<small_pool>> pools(has_tsan() ? 20 : 70);
    for (auto& pool : pools)
        pool = std::make_unique<small_pool>(64, 0, pages);
    {
        at_work const goes_on(workers, [&](std::size_t number, std::size_t round) {
            small_pool& pool = *pools[(number * 31 + round) % pools.size()];
            void* some[20];
            pool.allocate_batch(some);
            pool.deallocate_batch(some);
        });
        for (std::size_t i = 0; i < forks / 5; ++i)
            ASSERT_EQ(in_a_child([&] {
                          for (auto& pool : pools)
                              this->use_up(pool, {});
                      }),
                      "fine")
                << "fork " << i;
    }
}

TYPED_TEST(fork_of_a_pool, the_child_of_a_forked_child_can_use_the_pool)
{
    using small_pool = typename TypeParam::template pool<small_steps, ref<mapped_source>>;
    mapped_source pages;
    auto pool = std::make_unique<small_pool>(64, 0, pages);
    std::vector<void*> of_others(200);
    in_a_thread([&] { pool->allocate_batch(of_others); });
    at_work const goes_on(workers,
                          [&](std::size_t, std::size_t) { pool->deallocate(pool->allocate()); });
    for (std::size_t i = 0; i < 5; ++i)
        ASSERT_EQ(in_a_child([&] {
                      void* some[100];
                      pool->allocate_batch(some);
                      require(in_a_child([&] { this->use_up(pool, of_others); }) == "fine",
                              "a grandchild can use the pool");
                      pool->deallocate_batch(some);
                      this->use_up(pool, of_others);
                  }),
                  "fine");
}

// --- a fork while a thread is between the two statements of thread_cache::enter

struct fork_in_steps {
    gate all_frozen, interrupted;
};
std::atomic<fork_in_steps*> in_steps = nullptr;

/// Registers a fork handler before the library registers its handlers. So this handler runs after
/// the library has frozen all caches.
[[gnu::constructor(101)]] void listen_early()
{
    ::pthread_atfork(
        [] {
            if (fork_in_steps* const f = in_steps) {
                f->all_frozen.open();
                f->interrupted.wait();
            }
        },
        nullptr, nullptr);
}

TEST(fork_of_a_thread_cache,
     lets_the_child_freeze_the_cache_if_a_thread_was_interrupted_while_entering_it)
{
    struct cache : thread_cache {
        chunk taken;
    };
    default_heap heap;
    auto const caches = std::make_unique<thread_caches<cache>>();
    caches->find_or_make(heap);
    fork_in_steps steps;
    gate begun, forked;
    std::thread other([&] {
        cache* const mine = caches->find_or_make(heap);
        begun.open();
        steps.all_frozen.wait();
        EXPECT_FALSE(mine->enter());
        steps.interrupted.open();
        forked.wait();
        mine->leave();
    });
    begun.wait();
    in_steps = &steps;
    EXPECT_EQ(in_a_child([&] {
                  std::lock_guard const alone(caches->lock);
                  freeze_guard const frozen(*caches);
              }),
              "fine");
    in_steps = nullptr;
    forked.open();
    other.join();
    caches->detach_all();
    caches->release_all(heap);
}

} // namespace
