// Tests every function of multipools in the C API, in every threading mode.
#include "support.hpp"

#include <cstring>
#include <vector>

using namespace mallard::testing;

namespace {

template <class F>
void for_each_kind(F f)
{
    for (int const sync : {MALLARD_SYNC_NONE, MALLARD_SYNC_MUTEX, MALLARD_SYNC_THREAD_CACHED})
        for (int const reuse : {MALLARD_REUSE_ORDERED, MALLARD_REUSE_LIFO})
            for (int const check : {MALLARD_CHECK_OFF, MALLARD_CHECK_ON}) {
                SCOPED_TRACE(::testing::Message()
                             << "sync " << sync << ", reuse " << reuse << ", check " << check);
                auto options = sized<mallard_multipool_options>();
                options.sync = sync;
                options.reuse = reuse;
                options.check = check;
                f(options);
            }
}

mallard_stats stats_of(const mallard_multipool* multipool)
{
    auto stats = sized<mallard_stats>();
    EXPECT_EQ(mallard_multipool_stats(multipool, &stats), 0);
    return stats;
}

/// A block with its requested size and alignment, filled with a pattern.
struct block {
    unsigned char* data;
    std::size_t bytes;
    std::size_t align;
    unsigned char pattern;

    bool holds() const
    {
        for (std::size_t i = 0; i < bytes; ++i)
            if (data[i] != pattern)
                return false;
        return true;
    }
};

std::vector<block> allocate_many(mallard_multipool* multipool, std::size_t count)
{
    std::vector<block> blocks;
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t const bytes = i * 37 % 6000;
        std::size_t const align = i % 5 == 0 ? 0 : std::size_t{1} << i % 9;
        void* const data = mallard_multipool_allocate(multipool, bytes, align);
        EXPECT_NE(data, nullptr) << explanation();
        EXPECT_TRUE(is_aligned(data, align == 0 ? 16 : align));
        block const b{static_cast<unsigned char*>(data), bytes, align,
                      static_cast<unsigned char>(i)};
        std::memset(b.data, b.pattern, b.bytes);
        blocks.push_back(b);
    }
    return blocks;
}

} // namespace

TEST(c_multipool, allocates_and_frees_blocks_of_any_size)
{
    for_each_kind([](const mallard_multipool_options& options) {
        mallard_multipool* const multipool = mallard_multipool_create(&options);
        for (int round = 0; round < 2; ++round) {
            std::vector<block> const blocks = allocate_many(multipool, 700);
            EXPECT_EQ(stats_of(multipool).blocks_live, blocks.size());
            for (block const& b : blocks) {
                EXPECT_TRUE(b.holds());
                mallard_multipool_free(multipool, b.data, b.bytes, b.align);
            }
            EXPECT_EQ(stats_of(multipool).blocks_live, 0U);
            EXPECT_EQ(stats_of(multipool).bytes_live, 0U);
        }
        mallard_multipool_destroy(multipool);
    });
}

TEST(c_multipool, rejects_alignments_that_are_not_powers_of_two)
{
    mallard_multipool* const multipool = mallard_multipool_create(nullptr);
    EXPECT_EQ(mallard_multipool_allocate(multipool, 8, 12), nullptr);
    expect_failure(MALLARD_ERROR_ALIGN,
                   "mallard_multipool_allocate: align is 12, which is not a power of two");
    void* const block = mallard_multipool_allocate(multipool, 8, 8);
    mallard_multipool_free(multipool, block, 8, 12);
    expect_failure(MALLARD_ERROR_ALIGN,
                   "mallard_multipool_free: align is 12, which is not a power of two");
    EXPECT_EQ(stats_of(multipool).blocks_live, 1U);
    mallard_multipool_free(multipool, nullptr, 8, 12);
    EXPECT_EQ(errno, 0);
    mallard_multipool_free(multipool, block, 8, 8);
    mallard_multipool_destroy(multipool);
}

TEST(c_multipool, rejects_sizes_above_the_address_space)
{
    for_each_kind([](const mallard_multipool_options& options) {
        mallard_multipool* const multipool = mallard_multipool_create(&options);
        for (std::size_t const bytes : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX - 63}) {
            EXPECT_EQ(mallard_multipool_allocate(multipool, bytes, 64), nullptr);
            EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_TOO_LARGE) << explanation();
        }
        EXPECT_EQ(mallard_multipool_allocate(multipool, 1, std::size_t{1} << 63), nullptr);
        EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_TOO_LARGE) << explanation();
        EXPECT_EQ(stats_of(multipool).blocks_live, 0U);
        mallard_multipool_destroy(multipool);
    });
}

TEST(c_multipool, recognises_its_blocks)
{
    for_each_kind([](const mallard_multipool_options& options) {
        mallard_multipool* const multipool = mallard_multipool_create(&options);
        auto* const small = static_cast<char*>(mallard_multipool_allocate(multipool, 40, 8));
        auto* const large = static_cast<char*>(mallard_multipool_allocate(multipool, 50000, 8));
        EXPECT_EQ(mallard_multipool_owns(multipool, small + 39), 1);
        EXPECT_EQ(mallard_multipool_owns(multipool, large + 49999), 1);
        EXPECT_EQ(mallard_multipool_classify(multipool, small), MALLARD_VALID);
        EXPECT_EQ(mallard_multipool_classify(multipool, small + 1), MALLARD_INVALID);
        int elsewhere = 0;
        EXPECT_EQ(mallard_multipool_owns(multipool, &elsewhere), 0);
        EXPECT_EQ(mallard_multipool_classify(multipool, &elsewhere), MALLARD_MISS);
        mallard_multipool_destroy(multipool);
    });
}

TEST(c_multipool, returns_all_memory_to_its_source)
{
    for_each_kind([](mallard_multipool_options options) {
        recording_source source;
        source.serve(options);
        mallard_multipool* const multipool = mallard_multipool_create(&options);
        EXPECT_EQ(source.calls(), 1U);
        std::size_t const handle = source.bytes_taken();
        std::vector<block> const blocks = allocate_many(multipool, 700);
        mallard_multipool_reset(multipool);
        EXPECT_EQ(stats_of(multipool).blocks_live, 0U);
        EXPECT_GT(source.bytes_taken(), handle);
        mallard_multipool_trim(multipool, 0);
        EXPECT_EQ(stats_of(multipool).chunks, 0U);
        allocate_many(multipool, 700);
        mallard_multipool_release(multipool);
        EXPECT_EQ(source.bytes_taken(), handle);
        allocate_many(multipool, 700);
        mallard_multipool_destroy(multipool);
        EXPECT_EQ(source.bytes_taken(), 0U);
    });
}

TEST(c_multipool, handle_sizes_are_those_in_the_header)
{
    for_each_kind([](mallard_multipool_options options) {
        recording_source source;
        source.serve(options);
        mallard_multipool* const multipool = mallard_multipool_create(&options);
        bool const is_shared = options.sync != MALLARD_SYNC_NONE;
        EXPECT_GE(source.bytes_taken(), is_shared ? 20U << 10 : 0);
        EXPECT_LE(source.bytes_taken(), is_shared ? 36U << 10 : 1U << 10);
        mallard_multipool_destroy(multipool);
    });
}

TEST(c_multipool, applies_the_limit_to_each_of_its_pools)
{
    auto options = sized<mallard_multipool_options>();
    options.limit_bytes = 4096;
    mallard_multipool* const multipool = mallard_multipool_create(&options);
    while (mallard_multipool_allocate(multipool, 64, 8) != nullptr) {}
    expect_failure(MALLARD_ERROR_LIMIT, "mallard_multipool_allocate: the limit of 4096 bytes "
                                        "leaves no room for this request");
    EXPECT_NE(mallard_multipool_allocate(multipool, 128, 8), nullptr);
    EXPECT_NE(mallard_multipool_allocate(multipool, 100000, 8), nullptr);
    mallard_multipool_destroy(multipool);
}

TEST(c_multipool_death, stops_at_a_double_free_with_checks_on)
{
    auto options = sized<mallard_multipool_options>();
    options.check = MALLARD_CHECK_ON;
    mallard_multipool* const multipool = mallard_multipool_create(&options);
    void* const block = mallard_multipool_allocate(multipool, 40, 8);
    mallard_multipool_free(multipool, block, 40, 8);
    EXPECT_DEATH(mallard_multipool_free(multipool, block, 40, 8),
                 "mallard: double free of 0x[0-9a-f]* in a pool");
    mallard_multipool_destroy(multipool);
}

TEST(c_multipool_death, names_the_c_function_when_a_free_has_another_size)
{
    auto options = sized<mallard_multipool_options>();
    options.check = MALLARD_CHECK_ON;
    mallard_multipool* const multipool = mallard_multipool_create(&options);
    void* const block = mallard_multipool_allocate(multipool, 40, 8);
    EXPECT_DEATH(
        mallard_multipool_free(multipool, block, 400, 8),
        "the block is in another size class.*\n  help: .* in C to `mallard_multipool_free`");
    mallard_multipool_free(multipool, block, 40, 8);
    mallard_multipool_destroy(multipool);
}

TEST(c_multipool, cannot_be_lock_free)
{
    auto options = sized<mallard_multipool_options>();
    options.sync = MALLARD_SYNC_LOCK_FREE;
    EXPECT_EQ(mallard_multipool_create(&options), nullptr);
    expect_failure(MALLARD_ERROR_UNSUPPORTED, "mallard_multipool_create: a multipool does not "
                                              "support sync MALLARD_SYNC_LOCK_FREE");
}
