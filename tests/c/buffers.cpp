// Tests allocators whose only memory is a caller's buffer.
#include "support.hpp"

#include <thread>
#include <vector>

using namespace mallard::testing;

namespace {

/// Returns the options of a pool whose memory is the buffer `bytes`.
mallard_pool_options pool_in(std::vector<char>& bytes, std::size_t block_bytes)
{
    auto options = pool_of(block_bytes);
    options.buffer = bytes.data();
    options.buffer_bytes = bytes.size();
    return options;
}

} // namespace

TEST(c_buffer, is_the_only_memory_that_its_pool_uses)
{
    for (int sync = MALLARD_SYNC_NONE; sync <= MALLARD_SYNC_THREAD_CACHED; ++sync)
        for (int const reuse : {MALLARD_REUSE_DEFAULT, MALLARD_REUSE_ORDERED, MALLARD_REUSE_LIFO}) {
            SCOPED_TRACE(::testing::Message() << "sync " << sync << ", reuse " << reuse);
            std::vector<char> bytes(1 << 16);
            auto options = pool_in(bytes, 48);
            options.sync = sync;
            options.reuse = reuse;
            mallard_pool* const pool = mallard_pool_create(&options);
            ASSERT_NE(pool, nullptr) << explanation();
            EXPECT_GE(reinterpret_cast<char*>(pool), bytes.data());
            std::size_t count = 0;
            while (void* const block = mallard_pool_allocate(pool)) {
                EXPECT_GE(static_cast<char*>(block), bytes.data());
                EXPECT_LE(static_cast<char*>(block) + 48, bytes.data() + bytes.size());
                ++count;
            }
            EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED) << explanation();
            EXPECT_GT(count, bytes.size() / 48 / 2);
            if (sync == MALLARD_SYNC_NONE && reuse != MALLARD_REUSE_ORDERED) {
                EXPECT_GT(count * 48, bytes.size() - 1200);
            }

            mallard_pool_release(pool); // the whole buffer is free again
            EXPECT_EQ(allocate_all(pool), count);
            mallard_pool_destroy(pool);
        }
}

TEST(c_buffer, the_error_of_an_exhausted_buffer_explains_the_cause)
{
    std::vector<char> bytes(8192);
    auto const options = pool_in(bytes, 48);
    mallard_pool* const pool = mallard_pool_create(&options);
    allocate_all(pool);
    expect_failure(MALLARD_ERROR_REFUSED,
                   "mallard_pool_allocate: the buffer of 8192 bytes is used up");
    mallard_pool_destroy(pool);
}

TEST(c_buffer, create_fails_if_the_buffer_is_too_small_for_the_handle)
{
    std::vector<char> bytes(100);
    auto const options = pool_in(bytes, 48);
    EXPECT_EQ(mallard_pool_create(&options), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED);
    EXPECT_EQ(explanation().find("mallard_pool_create: the buffer has no "), 0U);
}

TEST(c_buffer, may_have_any_size_and_address)
{
    std::vector<char> bytes(4096);
    for (std::size_t offset = 0; offset < 70; ++offset)
        for (std::size_t size = 1; size < 3000; size += 61) {
            auto options = pool_of(24);
            options.buffer = bytes.data() + offset;
            options.buffer_bytes = size;
            mallard_pool* const pool = mallard_pool_create(&options);
            allocate_all(pool);
            mallard_pool_destroy(pool);
        }
}

TEST(c_buffer, a_buffer_of_the_computed_size_has_room_for_all_blocks)
{
    for (int const sync : {MALLARD_SYNC_NONE, MALLARD_SYNC_MUTEX})
        for (int const check : {MALLARD_CHECK_OFF, MALLARD_CHECK_ON})
            for (std::size_t const block : {1U, 8U, 24U, 48U, 100U, 4096U})
                for (std::size_t const align : {0U, 1U, 64U, 4096U})
                    for (std::size_t const count : {1U, 2U, 100U, 1000U}) {
                        auto options = pool_of(block);
                        options.sync = sync;
                        options.check = check;
                        options.align = align;
                        options.reuse = MALLARD_REUSE_LIFO;
                        std::size_t const size = mallard_pool_bytes_for(&options, count);
                        ASSERT_GT(size, 0U) << explanation();
                        std::vector<char> bytes(size + 13);
                        options.buffer = bytes.data() + 13;
                        options.buffer_bytes = size;
                        mallard_pool* const pool = mallard_pool_create(&options);
                        ASSERT_NE(pool, nullptr) << explanation();
                        EXPECT_GE(allocate_all(pool), count)
                            << "block " << block << ", align " << align;
                        mallard_pool_destroy(pool);
                    }
}

TEST(c_buffer, size_cannot_be_computed_for_every_pool)
{
    auto options = pool_of(48);
    EXPECT_EQ(mallard_pool_bytes_for(&options, 10), 0U);
    expect_failure(MALLARD_ERROR_UNSUPPORTED, "mallard_pool_bytes_for: only pools with reuse lifo "
                                              "and sync none or mutex can compute this size");
    options.reuse = MALLARD_REUSE_LIFO;
    EXPECT_EQ(mallard_pool_bytes_for(&options, SIZE_MAX), 0U);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_TOO_LARGE);
    EXPECT_EQ(mallard_pool_bytes_for(nullptr, 10), 0U);
    expect_failure(MALLARD_ERROR_NULL, "mallard_pool_bytes_for: options is NULL");
}

TEST(c_buffer, can_be_the_source_of_an_arena)
{
    std::vector<char> bytes(8192);
    auto options = sized<mallard_arena_options>();
    options.buffer = bytes.data();
    options.buffer_bytes = bytes.size();
    mallard_arena* const arena = mallard_arena_create(&options);
    std::size_t given = 0;
    while (mallard_arena_allocate(arena, 100, 4) != nullptr)
        given += 100;
    EXPECT_GT(given, 7600U);
    expect_failure(MALLARD_ERROR_REFUSED,
                   "mallard_arena_allocate: the buffer of 8192 bytes is used up");
    mallard_arena_reset(arena);
    EXPECT_NE(mallard_arena_allocate(arena, 7000, 4), nullptr);
    mallard_arena_destroy(arena);
}

TEST(c_buffer, can_be_the_source_of_an_arena_with_thread_caches)
{
    std::vector<char> bytes(1 << 16);
    auto options = sized<mallard_arena_options>();
    options.sync = MALLARD_SYNC_THREAD_CACHED;
    options.buffer = bytes.data();
    options.buffer_bytes = bytes.size();
    mallard_arena* const arena = mallard_arena_create(&options);
    ASSERT_NE(arena, nullptr) << explanation();
    EXPECT_NE(mallard_arena_allocate(arena, 100, 8), nullptr);
    auto stats = sized<mallard_stats>();
    EXPECT_EQ(mallard_arena_stats(arena, &stats), 0);
    EXPECT_LT(stats.bytes_taken, bytes.size() / 2); // one thread does not reserve the whole buffer
    std::thread([&] {
        EXPECT_NE(mallard_arena_allocate(arena, 100, 8), nullptr) << explanation();
    }).join();
    mallard_arena_destroy(arena);
}

TEST(c_buffer, can_be_the_source_of_a_multipool)
{
    std::vector<char> bytes(1 << 16);
    auto options = sized<mallard_multipool_options>();
    options.buffer = bytes.data();
    options.buffer_bytes = bytes.size();
    mallard_multipool* const multipool = mallard_multipool_create(&options);
    ASSERT_NE(multipool, nullptr) << explanation();
    std::size_t given = 0;
    for (std::size_t i = 1; mallard_multipool_allocate(multipool, i % 500 + 1, 8) != nullptr;
         i += 7)
        given += i % 500 + 1;
    EXPECT_GT(given, bytes.size() / 4);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_REFUSED) << explanation();
    mallard_multipool_destroy(multipool);
}
