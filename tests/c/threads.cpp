// Tests handles that many threads use at the same time. ThreadSanitizer runs them, too.
#include "support.hpp"

#include <cstring>
#include <thread>
#include <vector>

using namespace mallard::testing;

namespace {

constexpr int shared_modes[] = {MALLARD_SYNC_MUTEX, MALLARD_SYNC_LOCK_FREE,
                                MALLARD_SYNC_THREAD_CACHED};
constexpr int growing_modes[] = {MALLARD_SYNC_MUTEX, MALLARD_SYNC_THREAD_CACHED};
constexpr unsigned threads_count = 4;

/// Calls `f(number)` in several threads at the same time.
template <class F>
void in_threads(F f)
{
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < threads_count; ++i)
        threads.emplace_back(f, i);
    for (std::thread& t : threads)
        t.join();
}

} // namespace

TEST(c_threads, share_a_pool)
{
    for (int const sync : shared_modes) {
        SCOPED_TRACE(sync);
        recording_source source;
        auto options = pool_of(64);
        choose_sync(options, sync);
        options.check = MALLARD_CHECK_ON;
        source.serve(options);
        mallard_pool* const pool = mallard_pool_create(&options);
        ASSERT_NE(pool, nullptr) << explanation();
        std::vector<std::vector<unsigned char*>> kept(threads_count);
        in_threads([&](unsigned number) {
            auto const mark = static_cast<unsigned char>(number + 1);
            for (int round = 0; round < 200; ++round) {
                for (int i = 0; i < 40; ++i) {
                    auto* const block = static_cast<unsigned char*>(mallard_pool_allocate(pool));
                    ASSERT_NE(block, nullptr);
                    std::memset(block, mark, 64);
                    kept[number].push_back(block);
                }
                for (int i = 0; i < 35; ++i) {
                    EXPECT_EQ(kept[number].back()[63], mark);
                    mallard_pool_free(pool, kept[number].back());
                    kept[number].pop_back();
                }
            }
        });
        in_threads([&](unsigned number) { // frees the blocks of another thread
            for (unsigned char* const block : kept[(number + 1) % threads_count])
                mallard_pool_free(pool, block);
        });
        auto stats = sized<mallard_stats>();
        mallard_pool_stats(pool, &stats);
        EXPECT_EQ(stats.blocks_live, 0U);
        mallard_pool_destroy(pool);
    }
}

TEST(c_threads, share_a_multipool_with_a_failing_source)
{
    for (int const sync : growing_modes) {
        SCOPED_TRACE(sync);
        recording_source source;
        source.refuse_every = 5;
        auto options = sized<mallard_multipool_options>();
        options.sync = sync;
        source.serve(options);
        mallard_multipool* const multipool = mallard_multipool_create(&options);
        ASSERT_NE(multipool, nullptr) << explanation();
        in_threads([&](unsigned number) {
            for (std::size_t i = 0; i < 3000; ++i) {
                std::size_t const bytes = 1 + (i * 61 + number) % 6000;
                if (void* const block = mallard_multipool_allocate(multipool, bytes, 8)) {
                    std::memset(block, 1, bytes);
                    mallard_multipool_free(multipool, block, bytes, 8);
                } else {
                    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED) << explanation();
                }
            }
        });
        auto stats = sized<mallard_stats>();
        mallard_multipool_stats(multipool, &stats);
        EXPECT_EQ(stats.blocks_live, 0U);
        mallard_multipool_destroy(multipool);
    }
}

TEST(c_threads, share_an_arena)
{
    recording_source source;
    auto options = sized<mallard_arena_options>();
    options.sync = MALLARD_SYNC_THREAD_CACHED;
    source.serve(options);
    mallard_arena* const arena = mallard_arena_create(&options);
    ASSERT_NE(arena, nullptr) << explanation();
    in_threads([&](unsigned number) {
        std::vector<unsigned char*> mine;
        for (std::size_t i = 0; i < 2000; ++i) {
            auto* const block = static_cast<unsigned char*>(mallard_arena_allocate(arena, 40, 8));
            ASSERT_NE(block, nullptr);
            std::memset(block, static_cast<int>(number), 40);
            mine.push_back(block);
        }
        for (unsigned char* const block : mine)
            EXPECT_EQ(block[39], number);
    });
    mallard_arena_destroy(arena);
}

TEST(c_threads, have_separate_errors)
{
    in_threads([](unsigned number) {
        for (int i = 0; i < 100; ++i) {
            mallard_pool_options options = pool_of(8);
            options.align = number + 5; // 5, 6 and 7 are errors, 8 is valid
            mallard_pool* const pool = mallard_pool_create(&options);
            EXPECT_EQ(pool != nullptr, number == 3);
            if (pool == nullptr) {
                EXPECT_EQ(explanation().find("mallard_pool_create: align is " +
                                             std::to_string(number + 5)),
                          0U);
            }
            mallard_pool_destroy(pool);
        }
    });
}
