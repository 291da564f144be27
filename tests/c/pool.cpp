// Tests every function of pools in the C API, in every threading mode.
#include "support.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

using namespace mallard::testing;

namespace {

/// Calls `f(options)` for each kind of pool.
template <class F>
void for_each_kind(F f)
{
    for (int sync = MALLARD_SYNC_NONE; sync <= MALLARD_SYNC_THREAD_CACHED; ++sync)
        for (int const reuse : {MALLARD_REUSE_ORDERED, MALLARD_REUSE_LIFO})
            for (int const check : {MALLARD_CHECK_OFF, MALLARD_CHECK_ON}) {
                SCOPED_TRACE(::testing::Message()
                             << "sync " << sync << ", reuse " << reuse << ", check " << check);
                auto options = pool_of(48);
                choose_sync(options, sync);
                options.reuse = reuse;
                options.check = check;
                f(options);
            }
}

mallard_stats stats_of(const mallard_pool* pool)
{
    auto stats = sized<mallard_stats>();
    EXPECT_EQ(mallard_pool_stats(pool, &stats), 0);
    return stats;
}

std::vector<void*> allocate(mallard_pool* pool, std::size_t count)
{
    std::vector<void*> blocks;
    while (blocks.size() < count)
        blocks.push_back(mallard_pool_allocate(pool));
    return blocks;
}

} // namespace

TEST(c_pool, allocates_disjoint_aligned_blocks)
{
    for_each_kind([](const mallard_pool_options& options) {
        mallard_pool* const pool = mallard_pool_create(&options);
        std::vector<void*> blocks = allocate(pool, 5000);
        for (void* const block : blocks) {
            ASSERT_NE(block, nullptr);
            EXPECT_TRUE(is_aligned(block, 16));
            std::memset(block, 0x5a, 48);
        }
        std::sort(blocks.begin(), blocks.end());
        for (std::size_t i = 1; i < blocks.size(); ++i)
            EXPECT_GE(static_cast<char*>(blocks[i]) - static_cast<char*>(blocks[i - 1]), 48);
        mallard_pool_destroy(pool);
    });
}

TEST(c_pool, reuses_freed_blocks)
{
    for_each_kind([](const mallard_pool_options& options) {
        mallard_pool* const pool = mallard_pool_create(&options);
        std::vector<void*> const first = allocate(pool, 1000);
        for (void* const block : first)
            mallard_pool_free(pool, block);
        std::size_t const taken = stats_of(pool).bytes_taken;
        std::vector<void*> const second = allocate(pool, 1000);
        EXPECT_EQ(std::set<void*>(second.begin(), second.end()).size(), 1000U);
        EXPECT_EQ(stats_of(pool).bytes_taken, taken);
        mallard_pool_destroy(pool);
    });
}

TEST(c_pool, ignores_a_free_of_null)
{
    for_each_kind([](const mallard_pool_options& options) {
        mallard_pool* const pool = mallard_pool_create(&options);
        void* const block = mallard_pool_allocate(pool);
        mallard_pool_free(pool, nullptr);
        EXPECT_EQ(stats_of(pool).blocks_live, 1U);
        EXPECT_NE(mallard_pool_allocate(pool), nullptr);
        EXPECT_EQ(mallard_pool_classify(pool, block), MALLARD_VALID);
        mallard_pool_destroy(pool);
    });
}

TEST(c_pool, allocates_only_its_handle_before_the_first_block)
{
    for_each_kind([](mallard_pool_options options) {
        recording_source source;
        source.serve(options);
        mallard_pool* const pool = mallard_pool_create(&options);
        EXPECT_EQ(source.calls(), 1U);
        EXPECT_EQ(stats_of(pool).bytes_taken, 0U);
        mallard_pool_destroy(pool);
        EXPECT_EQ(source.bytes_taken(), 0U);
    });
}

TEST(c_pool, rounds_blocks_up_to_their_alignment)
{
    struct expected {
        std::size_t block_bytes, align, bytes, aligned;
    };
    for (expected const e :
         {expected{48, 0, 48, 16}, expected{20, 0, 20, 4}, expected{20, 8, 24, 8},
          expected{1, 64, 64, 64}, expected{100, 4096, 4096, 4096},
          expected{8, 1 << 21, 1 << 21, 1 << 21}}) {
        auto options = pool_of(e.block_bytes);
        options.align = e.align;
        mallard_pool* const pool = mallard_pool_create(&options);
        EXPECT_EQ(mallard_pool_block_bytes(pool), e.bytes);
        EXPECT_EQ(mallard_pool_block_align(pool), e.aligned);
        EXPECT_TRUE(is_aligned(mallard_pool_allocate(pool), e.aligned));
        EXPECT_TRUE(is_aligned(mallard_pool_allocate(pool), e.aligned));
        mallard_pool_destroy(pool);
    }
}

TEST(c_pool, reports_its_statistics)
{
    for_each_kind([](const mallard_pool_options& options) {
        mallard_pool* const pool = mallard_pool_create(&options);
        std::vector<void*> const blocks = allocate(pool, 100);
        for (std::size_t i = 0; i < 30; ++i)
            mallard_pool_free(pool, blocks[i]);
        mallard_stats const stats = stats_of(pool);
        EXPECT_EQ(stats.blocks_live, 70U);
        EXPECT_EQ(stats.bytes_live, 70U * 48);
        EXPECT_GE(stats.bytes_taken, stats.bytes_live + stats.bytes_idle);
        EXPECT_GE(stats.chunks, 1U);
        EXPECT_GE(stats.growths, 1U);
        EXPECT_GE(stats.refills, 1U);
        mallard_pool_destroy(pool);
    });
}

TEST(c_pool, fills_the_stats_structs_of_older_and_newer_callers)
{
    auto const options = pool_of(48);
    mallard_pool* const pool = mallard_pool_create(&options);
    allocate(pool, 3);

    struct {
        mallard_stats known;
        std::size_t unknown;
    } newer{{}, 7};
    newer.known.struct_bytes = sizeof newer;
    EXPECT_EQ(mallard_pool_stats(pool, &newer.known), 0);
    EXPECT_EQ(newer.known.blocks_live, 3U);
    EXPECT_EQ(newer.known.struct_bytes, sizeof newer);
    EXPECT_EQ(newer.unknown, 0U);

    auto older = sized<mallard_stats>();
    older.struct_bytes = offsetof(mallard_stats, bytes_live);
    older.bytes_live = 7;
    EXPECT_EQ(mallard_pool_stats(pool, &older), 0);
    EXPECT_EQ(older.blocks_live, 3U);
    EXPECT_EQ(older.bytes_live, 7U); // outside of the older struct, so not written

    older.struct_bytes = 0;
    EXPECT_EQ(mallard_pool_stats(pool, &older), MALLARD_ERROR_STRUCT);
    expect_failure(MALLARD_ERROR_STRUCT,
                   "mallard_pool_stats: struct_bytes is 0, and no mallard_stats has that size");
    mallard_pool_destroy(pool);
}

TEST(c_pool, recognises_its_blocks)
{
    for_each_kind([](const mallard_pool_options& options) {
        mallard_pool* const pool = mallard_pool_create(&options);
        std::vector<void*> const blocks = allocate(pool, 10);
        char* const block = static_cast<char*>(blocks[4]);
        EXPECT_EQ(mallard_pool_owns(pool, block), 1);
        EXPECT_EQ(mallard_pool_owns(pool, block + 7), 1);
        EXPECT_EQ(mallard_pool_classify(pool, block), MALLARD_VALID);
        EXPECT_EQ(mallard_pool_classify(pool, block + 7), MALLARD_INVALID);
        mallard_pool_free(pool, block);
        EXPECT_EQ(mallard_pool_classify(pool, block), MALLARD_INVALID);
        int elsewhere = 0;
        EXPECT_EQ(mallard_pool_owns(pool, &elsewhere), 0);
        EXPECT_EQ(mallard_pool_classify(pool, &elsewhere), MALLARD_MISS);
        EXPECT_EQ(mallard_pool_owns(pool, nullptr), 0);
        mallard_pool_destroy(pool);
    });
}

TEST(c_pool, frees_batches_that_contain_nulls)
{
    for_each_kind([](const mallard_pool_options& options) {
        mallard_pool* const pool = mallard_pool_create(&options);
        std::vector<void*> blocks(500);
        EXPECT_EQ(mallard_pool_allocate_batch(pool, blocks.data(), blocks.size()), 0);
        EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 500U);
        EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 0);
        for (std::size_t const kept :
             {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{499}})
            mallard_pool_free(pool, std::exchange(blocks[kept], nullptr));
        mallard_pool_free_batch(pool, blocks.data(), blocks.size());
        EXPECT_EQ(stats_of(pool).blocks_live, 0U);
        EXPECT_EQ(mallard_pool_allocate_batch(pool, nullptr, 0), 0);
        mallard_pool_free_batch(pool, blocks.data(), 0);
        mallard_pool_destroy(pool);
    });
}

TEST(c_pool, allocates_all_of_a_batch_or_nothing)
{
    for_each_kind([](mallard_pool_options options) {
        options.limit_bytes = 1 << 15;
        options.first_bytes = 1 << 12;
        choose_sync(options, options.sync, 1 << 15);
        mallard_pool* const pool = mallard_pool_create(&options);
        std::vector<void*> blocks(5000, &options);
        errno = 0;
        EXPECT_EQ(mallard_pool_allocate_batch(pool, blocks.data(), blocks.size()),
                  MALLARD_ERROR_LIMIT);
        expect_failure(MALLARD_ERROR_LIMIT, "mallard_pool_allocate_batch: the limit of 32768 "
                                            "bytes leaves no room for this request");
        EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 5000);
        EXPECT_EQ(stats_of(pool).blocks_live, 0U);
        EXPECT_EQ(mallard_pool_allocate_batch(pool, blocks.data(), 100), 0);
        mallard_pool_destroy(pool);
    });
}

TEST(c_pool, keeps_its_memory_at_reset_but_not_at_release)
{
    for_each_kind([](mallard_pool_options options) {
        recording_source source;
        source.serve(options);
        mallard_pool* const pool = mallard_pool_create(&options);
        std::size_t const handle = source.bytes_taken();
        allocate(pool, 3000);
        mallard_pool_reset(pool);
        EXPECT_EQ(stats_of(pool).blocks_live, 0U);
        std::size_t const calls = source.calls();
        allocate(pool, 3000);
        EXPECT_EQ(source.calls(), calls);
        mallard_pool_release(pool);
        EXPECT_EQ(source.bytes_taken(), handle);
        EXPECT_NE(mallard_pool_allocate(pool), nullptr);
        mallard_pool_destroy(pool);
    });
}

TEST(c_pool, trims_idle_chunks)
{
    for_each_kind([](mallard_pool_options options) {
        recording_source source;
        source.serve(options);
        mallard_pool* const pool = mallard_pool_create(&options);
        std::size_t const handle = source.bytes_taken();
        std::vector<void*> const blocks = allocate(pool, 10000);
        for (void* const block : blocks)
            mallard_pool_free(pool, block);
        std::size_t const full = stats_of(pool).bytes_taken;
        mallard_pool_trim(pool, full);
        EXPECT_GT(stats_of(pool).chunks, 0U);
        mallard_pool_trim(pool, 0);
        EXPECT_EQ(stats_of(pool).chunks, 0U);
        EXPECT_LT(source.bytes_taken() - handle, full / 2);
        EXPECT_NE(mallard_pool_allocate(pool), nullptr);
        mallard_pool_destroy(pool);
    });
}

TEST(c_pool, visits_live_blocks_and_allows_freeing_them)
{
    struct walk {
        mallard_pool* pool;
        std::vector<void*> seen;
        static void visit(void* self, void* block)
        {
            auto* const w = static_cast<walk*>(self);
            w->seen.push_back(block);
            mallard_pool_free(w->pool, block);
        }
    };
    for_each_kind([](const mallard_pool_options& options) {
        mallard_pool* const pool = mallard_pool_create(&options);
        std::vector<void*> blocks = allocate(pool, 300);
        for (int i = 0; i < 100; ++i) {
            mallard_pool_free(pool, blocks.back());
            blocks.pop_back();
        }
        walk w{pool, {}};
        EXPECT_EQ(mallard_pool_for_each(pool, walk::visit, &w), 0);
        std::sort(blocks.begin(), blocks.end());
        std::sort(w.seen.begin(), w.seen.end());
        EXPECT_EQ(w.seen, blocks);
        EXPECT_EQ(stats_of(pool).blocks_live, 0U);
        mallard_pool_destroy(pool);
    });
}

TEST(c_pool_death, stops_at_a_double_free_with_checks_on)
{
    auto options = pool_of(48);
    options.check = MALLARD_CHECK_ON;
    mallard_pool* const pool = mallard_pool_create(&options);
    void* const block = mallard_pool_allocate(pool);
    mallard_pool_free(pool, block);
    EXPECT_DEATH(mallard_pool_free(pool, block), "mallard: double free of 0x[0-9a-f]* in a pool");
    mallard_pool_destroy(pool);
}

TEST(c_pool, uses_nine_tenths_of_its_limit_at_every_block_size)
{
    for_each_kind([](mallard_pool_options options) {
        for (std::size_t const block : {48, 600, 4096, 10'000, 33'000, 200'000})
            for (std::size_t const limit : {block * 10 / 9 + 1, block * 10, std::size_t{1} << 20}) {
                if (limit < 8192 || limit / block > 5000)
                    continue;
                options.block_bytes = block;
                options.first_bytes = std::min(limit, std::size_t{1} << 16);
                options.limit_bytes = limit;
                choose_sync(options, options.sync, limit);
                mallard_pool* const pool = mallard_pool_create(&options);
                ASSERT_NE(pool, nullptr);
                std::size_t count = 0;
                while (mallard_pool_allocate(pool) != nullptr)
                    ++count;
                // The overhead of a block is 4 bytes in a lock-free pool, and up to three bits in
                // others.
                std::size_t const each = block + (options.sync == MALLARD_SYNC_LOCK_FREE ? 4 : 1);
                EXPECT_GE(count, limit / 10 * 9 / each) << block << " bytes, limit " << limit;
                mallard_pool_destroy(pool);
            }
    });
}

TEST(c_pool, needs_little_more_than_the_first_block_at_any_size)
{
    for_each_kind([](mallard_pool_options options) {
        if (options.sync == MALLARD_SYNC_LOCK_FREE)
            return; // a lock-free pool has one chunk, whose size the options choose
        options.block_bytes = std::size_t{16} << 20;
        mallard_pool* const pool = mallard_pool_create(&options);
        void* const block = mallard_pool_allocate(pool);
        EXPECT_NE(block, nullptr);
        EXPECT_LE(stats_of(pool).bytes_taken, std::size_t{17} << 20);
        mallard_pool_free(pool, block);
        mallard_pool_destroy(pool);
    });
}
