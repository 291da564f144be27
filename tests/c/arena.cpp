// Tests every function of arenas in the C API.
#include "support.hpp"

#include <cstring>

using namespace mallard::testing;

namespace {

mallard_stats stats_of(const mallard_arena* arena)
{
    auto stats = sized<mallard_stats>();
    EXPECT_EQ(mallard_arena_stats(arena, &stats), 0);
    return stats;
}

/// Calls `f(options)` for each kind of arena.
template <class F>
void for_each_kind(F f)
{
    for (int const sync : {MALLARD_SYNC_NONE, MALLARD_SYNC_THREAD_CACHED})
        for (int const check : {MALLARD_CHECK_OFF, MALLARD_CHECK_ON}) {
            SCOPED_TRACE(::testing::Message() << "sync " << sync << ", check " << check);
            auto options = sized<mallard_arena_options>();
            options.sync = sync;
            options.check = check;
            f(options);
        }
}

} // namespace

TEST(c_arena, allocates_disjoint_aligned_blocks)
{
    for_each_kind([](const mallard_arena_options& options) {
        mallard_arena* const arena = mallard_arena_create(&options);
        char* last = nullptr;
        std::size_t last_bytes = 0;
        for (std::size_t i = 0; i < 3000; ++i) {
            std::size_t const bytes = i % 200;
            std::size_t const align = std::size_t{1} << i % 10;
            auto* const block = static_cast<char*>(mallard_arena_allocate(arena, bytes, align));
            ASSERT_NE(block, nullptr) << explanation();
            EXPECT_TRUE(is_aligned(block, align));
            EXPECT_TRUE(block >= last + last_bytes || block + bytes <= last);
            EXPECT_NE(block, last);
            std::memset(block, 0x5a, bytes);
            last = block;
            last_bytes = bytes;
        }
        mallard_arena_destroy(arena);
    });
}

TEST(c_arena, aligns_for_any_type_by_default)
{
    mallard_arena* const arena = mallard_arena_create(nullptr);
    mallard_arena_allocate(arena, 1, 1);
    EXPECT_TRUE(is_aligned(mallard_arena_allocate(arena, 1, 0), alignof(std::max_align_t)));
    mallard_arena_allocate(arena, 1, 1);
    EXPECT_TRUE(is_aligned(mallard_arena_allocate(arena, 100, 1 << 21), 1 << 21));
    mallard_arena_destroy(arena);
}

TEST(c_arena, rejects_alignments_that_are_not_powers_of_two)
{
    mallard_arena* const arena = mallard_arena_create(nullptr);
    for (std::size_t const align : {std::size_t{3}, std::size_t{24}, SIZE_MAX}) {
        EXPECT_EQ(mallard_arena_allocate(arena, 8, align), nullptr);
        expect_failure(MALLARD_ERROR_ALIGN, "mallard_arena_allocate: align is " +
                                                std::to_string(align) +
                                                ", which is not a power of two");
    }
    void* const block = mallard_arena_allocate(arena, 8, 8);
    mallard_arena_free(arena, block, 8, 24);
    expect_failure(MALLARD_ERROR_ALIGN,
                   "mallard_arena_free: align is 24, which is not a power of two");
    mallard_arena_destroy(arena);
}

TEST(c_arena, rejects_sizes_above_the_address_space)
{
    for_each_kind([](const mallard_arena_options& options) {
        mallard_arena* const arena = mallard_arena_create(&options);
        for (std::size_t const bytes : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX - 15}) {
            EXPECT_EQ(mallard_arena_allocate(arena, bytes, 1), nullptr);
            EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_TOO_LARGE) << explanation();
            EXPECT_EQ(errno, ENOMEM);
        }
        EXPECT_EQ(mallard_arena_allocate(arena, 8, std::size_t{1} << 63), nullptr);
        EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_TOO_LARGE) << explanation();
        EXPECT_NE(mallard_arena_allocate(arena, 8, 8), nullptr);
        mallard_arena_destroy(arena);
    });
}

TEST(c_arena, reuses_the_memory_of_the_last_block)
{
    mallard_arena* const arena = mallard_arena_create(nullptr);
    void* const first = mallard_arena_allocate(arena, 100, 8);
    void* const second = mallard_arena_allocate(arena, 100, 8);
    mallard_arena_free(arena, first, 100, 8); // not the last block: the free has no effect
    mallard_arena_free(arena, second, 100, 8);
    EXPECT_EQ(mallard_arena_allocate(arena, 50, 8), second);
    mallard_arena_free(arena, nullptr, 50, 8);
    void* const third = mallard_arena_allocate(arena, 50, 0);
    mallard_arena_free(arena, third, 50, 0);
    EXPECT_EQ(mallard_arena_allocate(arena, 50, 0), third);
    mallard_arena_destroy(arena);
}

TEST(c_arena, grows_and_shrinks_the_last_block_in_place)
{
    mallard_arena* const arena = mallard_arena_create(nullptr);
    void* const first = mallard_arena_allocate(arena, 100, 8);
    EXPECT_EQ(mallard_arena_expand(arena, first, 100, 200), 0);
    auto* const second = static_cast<char*>(mallard_arena_allocate(arena, 8, 8));
    EXPECT_GE(second, static_cast<char*>(first) + 200);
    EXPECT_EQ(mallard_arena_expand(arena, first, 200, 50), 0); // any block may shrink
    EXPECT_EQ(mallard_arena_expand(arena, first, 200, 201), MALLARD_ERROR_PLACE);
    expect_failure(MALLARD_ERROR_PLACE, "mallard_arena_expand: the block cannot grow from 200 to "
                                        "201 bytes in place");
    EXPECT_EQ(mallard_arena_expand(arena, second, 8, 1 << 20), MALLARD_ERROR_PLACE);
    EXPECT_EQ(mallard_arena_expand(arena, second, 8, SIZE_MAX), MALLARD_ERROR_PLACE);
    mallard_arena_destroy(arena);
}

TEST(c_arena, rewinds_to_its_marks)
{
    for (int const check : {MALLARD_CHECK_OFF, MALLARD_CHECK_ON}) {
        auto options = sized<mallard_arena_options>();
        options.check = check;
        mallard_arena* const arena = mallard_arena_create(&options);
        auto* const kept = static_cast<char*>(mallard_arena_allocate(arena, 100, 8));
        std::memset(kept, 0x77, 100);
        mallard_mark outer;
        ASSERT_EQ(mallard_arena_mark(arena, &outer), 0);
        void* const first = mallard_arena_allocate(arena, 100, 8);
        mallard_mark inner;
        ASSERT_EQ(mallard_arena_mark(arena, &inner), 0);
        void* const second = mallard_arena_allocate(arena, 100000, 8); // in another chunk
        mallard_arena_rewind(arena, &inner);
        EXPECT_EQ(mallard_arena_allocate(arena, 100000, 8), second);
        mallard_arena_rewind(arena, &outer);
        EXPECT_EQ(mallard_arena_allocate(arena, 100, 8), first);
        EXPECT_EQ(kept[99], 0x77);
        mallard_arena_destroy(arena);
    }
}

TEST(c_arena, keeps_its_memory_at_reset_but_not_at_release)
{
    for_each_kind([](mallard_arena_options options) {
        recording_source source;
        source.serve(options);
        mallard_arena* const arena = mallard_arena_create(&options);
        EXPECT_EQ(source.calls(), 1U);
        std::size_t const handle = source.bytes_taken();
        auto const fill = [&] {
            for (int i = 0; i < 1000; ++i)
                ASSERT_NE(mallard_arena_allocate(arena, 100, 8), nullptr);
        };
        fill();
        mallard_arena_reset(arena);
        std::size_t const calls = source.calls();
        fill();
        EXPECT_EQ(source.calls(), calls);
        mallard_arena_reset(arena);
        mallard_arena_trim(arena, SIZE_MAX);
        EXPECT_GT(stats_of(arena).chunks, 0U);
        mallard_arena_trim(arena, 0);
        fill();
        mallard_arena_release(arena);
        EXPECT_EQ(stats_of(arena).bytes_live, 0U);
        fill();
        mallard_arena_destroy(arena);
        EXPECT_EQ(source.bytes_taken(), 0U);
        EXPECT_GT(handle, 0U);
    });
}

TEST(c_arena, reports_its_statistics)
{
    for_each_kind([](const mallard_arena_options& options) {
        mallard_arena* const arena = mallard_arena_create(&options);
        mallard_arena_allocate(arena, 1000, 8);
        mallard_stats const stats = stats_of(arena);
        EXPECT_GE(stats.bytes_live, 1000U);
        EXPECT_LT(stats.bytes_live, 1100U);
        EXPECT_GE(stats.bytes_taken, stats.bytes_live + stats.bytes_idle);
        EXPECT_EQ(stats.blocks_live, 0U); // an arena does not count its live blocks
        EXPECT_GE(stats.chunks, 1U);
        mallard_arena_destroy(arena);
    });
}

TEST(c_arena, stays_within_its_limit)
{
    for_each_kind([](mallard_arena_options options) {
        options.limit_bytes = 1 << 14;
        mallard_arena* const arena = mallard_arena_create(&options);
        std::size_t bytes = 0;
        while (bytes < 100000 && mallard_arena_allocate(arena, 100, 4) != nullptr)
            bytes += 100;
        expect_failure(MALLARD_ERROR_LIMIT, "mallard_arena_allocate: the limit of 16384 bytes "
                                            "leaves no room for this request");
        EXPECT_GT(bytes, 15000U);
        EXPECT_LE(stats_of(arena).bytes_taken, 16384U);
        mallard_arena_destroy(arena);
    });
}

TEST(c_arena, supports_many_threads_only_with_thread_caches)
{
    auto options = sized<mallard_arena_options>();
    options.sync = MALLARD_SYNC_MUTEX;
    EXPECT_EQ(mallard_arena_create(&options), nullptr);
    expect_failure(MALLARD_ERROR_UNSUPPORTED,
                   "mallard_arena_create: an arena does not support sync MALLARD_SYNC_MUTEX");
    options.sync = MALLARD_SYNC_LOCK_FREE;
    EXPECT_EQ(mallard_arena_create(&options), nullptr);
    expect_failure(MALLARD_ERROR_UNSUPPORTED,
                   "mallard_arena_create: an arena does not support sync "
                   "MALLARD_SYNC_LOCK_FREE");
}

TEST(c_arena, an_arena_with_thread_caches_does_not_support_marks)
{
    auto options = sized<mallard_arena_options>();
    options.sync = MALLARD_SYNC_THREAD_CACHED;
    mallard_arena* const arena = mallard_arena_create(&options);
    ASSERT_NE(arena, nullptr) << explanation();
    void* const block = mallard_arena_allocate(arena, 8, 8);
    mallard_mark mark{};
    EXPECT_EQ(mallard_arena_mark(arena, &mark), MALLARD_ERROR_UNSUPPORTED);
    expect_failure(MALLARD_ERROR_UNSUPPORTED,
                   "mallard_arena_mark: a shared arena does not support this call");
    EXPECT_EQ(mallard_arena_expand(arena, block, 8, 16), MALLARD_ERROR_UNSUPPORTED);
    expect_failure(MALLARD_ERROR_UNSUPPORTED,
                   "mallard_arena_expand: a shared arena does not support this call");
    mallard_arena_rewind(arena, &mark);
    expect_failure(MALLARD_ERROR_UNSUPPORTED,
                   "mallard_arena_rewind: a shared arena does not support this call");
    mallard_arena_destroy(arena);
}

TEST(c_arena_death, stops_at_an_outdated_mark_with_checks_on)
{
    auto options = sized<mallard_arena_options>();
    options.check = MALLARD_CHECK_ON;
    mallard_arena* const arena = mallard_arena_create(&options);
    mallard_mark outer;
    mallard_mark inner;
    mallard_arena_mark(arena, &outer);
    mallard_arena_allocate(arena, 8, 8);
    mallard_arena_mark(arena, &inner);
    mallard_arena_rewind(arena, &outer);
    EXPECT_DEATH(mallard_arena_rewind(arena, &inner),
                 "mallard: rewind to a mark that is no longer valid in an arena");
    mallard_arena_destroy(arena);
}
