// Tests sources: malloc, and functions of the caller, both of which may fail.
#include "support.hpp"

#include <memory>
#include <stdexcept>
#include <vector>

using namespace mallard::testing;

// malloc returns null under a sanitizer too, instead of stopping the process.
extern "C" const char* __asan_default_options()
{
    return "allocator_may_return_null=1";
}
extern "C" const char* __tsan_default_options()
{
    return "allocator_may_return_null=1";
}

namespace {

mallard_stats stats_of(const mallard_pool* pool)
{
    auto stats = sized<mallard_stats>();
    EXPECT_EQ(mallard_pool_stats(pool, &stats), 0);
    return stats;
}

} // namespace

TEST(c_source, create_fails_if_the_source_has_no_memory_for_the_handle)
{
    recording_source source;
    source.refuse_every = 1;
    auto pool = pool_of(48);
    auto arena = sized<mallard_arena_options>();
    auto multipool = sized<mallard_multipool_options>();
    source.serve(pool);
    source.serve(arena);
    source.serve(multipool);
    EXPECT_EQ(mallard_pool_create(&pool), nullptr);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED);
    EXPECT_EQ(explanation().find("mallard_pool_create: the caller's take did not return "), 0U);
    EXPECT_EQ(mallard_arena_create(&arena), nullptr);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED);
    EXPECT_EQ(explanation().find("mallard_arena_create: the caller's take did not return "), 0U);
    EXPECT_EQ(mallard_multipool_create(&multipool), nullptr);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED);
    EXPECT_EQ(explanation().find("mallard_multipool_create: the caller's take did not return "),
              0U);
    EXPECT_EQ(errno, ENOMEM);
}

TEST(c_source, failure_of_malloc_is_explained)
{
    std::size_t const bytes = std::size_t{1} << 50;
    mallard_arena* const arena = mallard_arena_create(nullptr);
    EXPECT_EQ(mallard_arena_allocate(arena, bytes, 8), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED);
    EXPECT_EQ(explanation().find("mallard_arena_allocate: malloc failed to allocate 1125899906842"),
              0U);
    EXPECT_NE(mallard_arena_allocate(arena, 8, 8), nullptr);
    mallard_arena_destroy(arena);

    auto const options = pool_of(bytes);
    mallard_pool* const pool = mallard_pool_create(&options);
    EXPECT_EQ(mallard_pool_allocate(pool), nullptr);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED) << explanation();
    mallard_pool_destroy(pool);
}

TEST(c_source, receives_a_smaller_request_after_a_failure)
{
    auto options = pool_of(48);
    options.first_bytes = 1 << 20;
    recording_source source;
    source.serve(options);
    source.bytes_max = 100000;
    mallard_pool* const pool = mallard_pool_create(&options);
    mallard_pool_create(nullptr);
    EXPECT_NE(mallard_pool_allocate(pool), nullptr);
    EXPECT_GT(source.refusals(), 0U);
    // The second, smaller chunk request succeeded, so there is no new failure.
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_NULL);
    mallard_pool_destroy(pool);
}

TEST(c_source, failure_is_not_reported_when_a_limit_is_reached_later)
{
    auto options = pool_of(48);
    options.reuse = MALLARD_REUSE_LIFO;
    options.limit_bytes = 40000;
    recording_source source;
    source.serve(options);
    source.bytes_max = 20000;
    mallard_pool* const pool = mallard_pool_create(&options);
    allocate_all(pool);
    EXPECT_GT(source.refusals(), 0U);
    expect_failure(MALLARD_ERROR_LIMIT, "mallard_pool_allocate: the limit of 40000 bytes leaves "
                                        "no room for this request");
    mallard_pool_destroy(pool);
}

TEST(c_source, a_pool_leaks_nothing_if_its_source_sometimes_fails)
{
    for (int const sync : {MALLARD_SYNC_NONE, MALLARD_SYNC_MUTEX, MALLARD_SYNC_THREAD_CACHED})
        for (std::size_t every = 2; every < 12; ++every) {
            SCOPED_TRACE(::testing::Message() << "sync " << sync << ", every " << every);
            recording_source source;
            source.refuse_every = every;
            auto options = sized<mallard_multipool_options>();
            options.sync = sync;
            source.serve(options);
            mallard_multipool* const multipool = mallard_multipool_create(&options);
            ASSERT_NE(multipool, nullptr) << explanation();
            struct block {
                void* data;
                std::size_t bytes;
            };
            std::vector<block> live;
            for (std::size_t i = 0; i < 2000; ++i) {
                std::size_t const bytes = 1 + i * 61 % 7000;
                errno = 0;
                if (void* const data = mallard_multipool_allocate(multipool, bytes, 8)) {
                    *static_cast<char*>(data) = 1;
                    live.push_back({data, bytes});
                } else {
                    EXPECT_EQ(errno, ENOMEM);
                    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED) << explanation();
                }
                if (i % 3 == 0 && !live.empty()) {
                    mallard_multipool_free(multipool, live.back().data, live.back().bytes, 8);
                    live.pop_back();
                }
            }
            auto stats = sized<mallard_stats>();
            mallard_multipool_stats(multipool, &stats);
            EXPECT_EQ(stats.blocks_live, live.size());
            EXPECT_GT(source.refusals(), 0U);
            for (block const b : live)
                mallard_multipool_free(multipool, b.data, b.bytes, 8);
            mallard_multipool_stats(multipool, &stats);
            EXPECT_EQ(stats.blocks_live, 0U);
            mallard_multipool_destroy(multipool); // the destructor of the source checks for leaks
        }
}

TEST(c_source, an_arena_leaks_nothing_if_its_source_sometimes_fails)
{
    for (std::size_t every = 2; every < 12; ++every) {
        recording_source source;
        source.refuse_every = every;
        source.bytes_max = 60000;
        auto options = sized<mallard_arena_options>();
        source.serve(options);
        mallard_arena* const arena = mallard_arena_create(&options);
        std::size_t failures = 0;
        for (std::size_t i = 0; i < 2000; ++i)
            failures += mallard_arena_allocate(arena, 1 + i * 611 % 70000, 8) == nullptr;
        EXPECT_GT(failures, 0U);
        EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED);
        mallard_arena_destroy(arena);
    }
}

TEST(c_source, a_batch_leaks_nothing_if_the_source_fails)
{
    auto options = pool_of(1000);
    recording_source source;
    source.serve(options);
    mallard_pool* const pool = mallard_pool_create(&options);
    source.refuse_every = 1;
    std::vector<void*> blocks(10);
    EXPECT_EQ(mallard_pool_allocate_batch(pool, blocks.data(), 10), MALLARD_ERROR_REFUSED);
    EXPECT_EQ(explanation().find("mallard_pool_allocate_batch: the caller's take did not return "),
              0U);
    EXPECT_EQ(stats_of(pool).blocks_live, 0U);
    source.refuse_every = 0;
    EXPECT_EQ(mallard_pool_allocate_batch(pool, blocks.data(), 10), 0);
    mallard_pool_destroy(pool);
}

TEST(c_source, misalignment_is_explained)
{
    auto options = pool_of(64);
    options.align = 64;
    recording_source source;
    source.serve(options);
    mallard_pool* const pool = mallard_pool_create(&options);
    source.misalign_by = 8;
    errno = 0;
    EXPECT_EQ(mallard_pool_allocate(pool), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_CHUNK);
    EXPECT_EQ(explanation().find("mallard_pool_allocate: the caller's take returned 0x"), 0U);
    EXPECT_NE(explanation().find(", which is not a multiple of "), std::string::npos);
    source.misalign_by = 0;
    EXPECT_NE(mallard_pool_allocate(pool), nullptr);
    mallard_pool_destroy(pool);
}

TEST(c_source, gets_all_memory_back_before_destroy_returns)
{
    auto source = std::make_unique<recording_source>();
    auto options = pool_of(48);
    source->serve(options);
    mallard_pool* const pool = mallard_pool_create(&options);
    for (int i = 0; i < 5000; ++i)
        ASSERT_NE(mallard_pool_allocate(pool), nullptr);
    mallard_pool_destroy(pool);
    EXPECT_EQ(source->bytes_taken(), 0U);
}

TEST(c_source_death, exception_stops_the_process)
{
    auto options = pool_of(48);
    options.take = [](void*, std::size_t, std::size_t) -> void* {
        throw std::runtime_error("from a take of C++");
    };
    options.give = [](void*, void*, std::size_t, std::size_t) {};
    EXPECT_DEATH(
        {
            try {
                mallard_pool_create(&options);
            } catch (...) {
                std::fputs("it came through\n", stderr);
                std::abort();
            }
        },
        "terminate called after throwing");
}
