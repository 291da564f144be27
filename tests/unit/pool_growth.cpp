// Tests the requests of a pool to its source, and its behaviour when the source is exhausted.
#include "../support/kinds.hpp"
#include "../support/model.hpp"

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

template <class Kind>
class pool_growth : public ::testing::Test {
protected:
    /// A pool with chunks of 4 KiB, so that only the growth rule decides how much is requested.
    template <growth G>
    using grown = typename Kind::template pool<pool_options{.chunk = 4096, .grow = G}>;

    /// Allocates blocks of 48 bytes until the pool is exhausted. Returns the number of blocks.
    template <class Pool>
    std::size_t exhaust(Pool& pool)
    {
        std::size_t count = 0;
        for (; void* const block = pool.try_allocate(); ++count)
            blocks.add(block, {pool.block_bytes(), pool.block_align()});
        EXPECT_THROW(static_cast<void>(pool.allocate()), std::bad_alloc);
        EXPECT_EQ(pool.stats().blocks_live, blocks.count());
        return count;
    }

    /// Expects the pool to use at least nine tenths of its limit, and never more than the limit.
    template <growth G>
    void expect_use()
    {
        typename Kind::template pool<pool_options{.grow = G}> pool(48, 0, heap);
        std::size_t const before = heap.bytes();
        EXPECT_GE(exhaust(pool) * 48, G.limit / 10 * 9) << G.limit;
        EXPECT_LE(heap.bytes() - before, G.limit);
        blocks.clear();
    }

    /// Returns the bytes of each chunk request. Omits requests for the array in which an ordered
    /// pool keeps recently freed blocks.
    std::vector<std::size_t> steps() const
    {
        std::vector<std::size_t> bytes;
        for (layout const asked : heap.asked())
            if (asked.bytes > 64 * sizeof(void*))
                bytes.push_back(asked.bytes);
        return bytes;
    }

    failing_source heap;
    model blocks;
};
TYPED_TEST_SUITE(pool_growth, kinds, kind_names);

using list = std::vector<std::size_t>;

TYPED_TEST(pool_growth, a_pool_with_growth_none_fails_after_one_chunk)
{
    typename TestFixture::template grown<growth::none(10000)> pool(48, 0, this->heap);
    std::size_t const count = this->exhaust(pool);
    EXPECT_GE(count, (10000U - 512 - 256) / 48);
    EXPECT_LE(this->heap.bytes_peak(), 10000U);
    EXPECT_EQ(this->steps().size(), 1U);

    void* const block = this->blocks[count / 2];
    this->blocks.remove(block);
    pool.deallocate(block);
    EXPECT_EQ(pool.try_allocate(), block) << "what is freed is there again";
    EXPECT_EQ(pool.try_allocate(), nullptr);
}

TYPED_TEST(pool_growth, of_none_allocates_nothing_if_the_first_step_is_smaller_than_a_block)
{
    for (std::size_t const bytes : {4096, 1000, 960}) {
        typename TestFixture::template grown<growth::none(1000)> pool(bytes, 0, this->heap);
        EXPECT_EQ(this->exhaust(pool), 0U) << bytes;
    }
    typename TestFixture::template grown<growth::none(0)> nothing(8, 0, this->heap);
    EXPECT_EQ(this->exhaust(nothing), 0U);
    EXPECT_EQ(this->heap.bytes(), 0U);
}

TYPED_TEST(pool_growth, follows_its_rule)
{
    auto const grow_to = [](auto& pool, std::size_t bytes) {
        while (pool.stats().bytes_live < bytes)
            static_cast<void>(pool.allocate());
    };
    {
        typename TestFixture::template grown<growth::fixed(8192)> fixed(48, 0, this->heap);
        grow_to(fixed, 30000);
        EXPECT_EQ(this->steps(), (list{8192, 8192, 8192, 8192}));
    }
    std::size_t const after_fixed = this->steps().size();
    {
        typename TestFixture::template grown<growth::linear(4096, 8192)> linear(48, 0, this->heap);
        grow_to(linear, 45000);
        list const all = this->steps();
        EXPECT_EQ(list(all.begin() + static_cast<std::ptrdiff_t>(after_fixed), all.end()),
                  (list{4096, 12288, 20480, 28672}));
    }
    std::size_t const after_linear = this->steps().size();
    typename TestFixture::template grown<growth{.first = 4096, .max = 32768}> doubled(48, 0,
                                                                                      this->heap);
    grow_to(doubled, 100000);
    list const all = this->steps();
    EXPECT_EQ(list(all.begin() + static_cast<std::ptrdiff_t>(after_linear), all.end()),
              (list{4096, 8192, 16384, 32768, 32768, 32768}));
}

TYPED_TEST(pool_growth, never_exceeds_its_limit_and_uses_most_of_it)
{
    typename TestFixture::template grown<growth{.first = 4096, .limit = 100000}> pool(48, 0,
                                                                                      this->heap);
    for (int round = 0; round < 3; ++round) {
        EXPECT_GE(this->exhaust(pool) * 48, 90'000U);
        EXPECT_LE(this->heap.bytes_peak(), 100000U);
        EXPECT_EQ(pool.stats().bytes_taken, this->heap.bytes());
        this->blocks.clear();
        pool.release();
    }
    this->exhaust(pool);
    while (!this->blocks.empty()) {
        void* const block = this->blocks[0];
        this->blocks.remove(block);
        pool.deallocate(block);
    }
    EXPECT_LE(this->heap.bytes_peak(), 100000U);
    pool.trim();
    EXPECT_GE(this->exhaust(pool) * 48, 90'000U) << "what was trimmed counts no more";
}

TYPED_TEST(pool_growth, by_a_function_gets_the_last_step_and_the_request)
{
    static std::vector<std::size_t> seen;
    seen.clear();
    growth_function const noted = [](std::size_t last, std::size_t asked) noexcept {
        if (seen.empty() || seen.back() != last)
            seen.push_back(last);
        EXPECT_GT(asked, 0U);
        return last == 0 ? std::size_t{8192} : last + 4096;
    };
    using pool = typename TestFixture::template grown<growth{}>;
    {
        pool custom(48, 0, this->heap, noted);
        while (custom.stats().bytes_live < 30000)
            static_cast<void>(custom.allocate());
    }
    EXPECT_EQ(this->steps(), (list{8192, 12288, 16384}));
    EXPECT_EQ(seen.front(), 0U);
}

TYPED_TEST(pool_growth, by_a_function_that_returns_0_requests_the_smallest_chunk)
{
    using pool = typename TestFixture::template grown<growth{}>;
    pool least(48, 0, this->heap, [](std::size_t, std::size_t) noexcept { return std::size_t{0}; });
    for (int i = 0; i < 300; ++i)
        this->blocks.add(least.allocate(), {48});
    for (std::size_t const bytes : this->steps())
        EXPECT_LE(bytes, 4096U);
}

TYPED_TEST(pool_growth, by_a_function_is_limited_to_the_maximum)
{
    growth_function const everything = [](std::size_t, std::size_t) noexcept { return most; };
    {
        using pool = typename TestFixture::template grown<growth{.max = 65536}>;
        pool greedy(48, 0, this->heap, everything);
        static_cast<void>(greedy.allocate());
        EXPECT_EQ(this->steps(), (list{65536}));
    }
    using pool = typename TestFixture::template grown<growth{.max = most}>;
    this->heap.fail_above(100000);
    pool greedier(48, 0, this->heap, everything);
    for (int i = 0; i < 3000; ++i)
        this->blocks.add(greedier.allocate(), {48});
    EXPECT_GT(this->steps().back(), 50000U) << "a step refused is halved until it is given";
}

TYPED_TEST(pool_growth, requests_a_smaller_step_if_the_source_cannot_supply_a_large_one)
{
    this->heap.fail_above(9000);
    typename TestFixture::template grown<growth::fixed(1 << 20)> pool(48, 0, this->heap);
    for (int i = 0; i < 1000; ++i)
        this->blocks.add(pool.allocate(), {48});
    for (auto const& [data, c] : this->heap.live())
        EXPECT_LE(c.bytes, 9000U);
    this->blocks.verify();
}

TYPED_TEST(pool_growth, leaks_nothing_whichever_call_to_the_source_fails)
{
    for_each_refusal([](failing_source& source) {
        model mine;
        typename TestFixture::template grown<growth::fixed(8192)> pool(48, 0, source);
        for (int i = 0; i < 1000; ++i) {
            void* block = pool.try_allocate();
            if (block == nullptr)
                block = pool.allocate(); // only one call of the source fails
            mine.add(block, {48});
        }
        EXPECT_EQ(pool.stats().blocks_live, 1000U);
        while (!mine.empty()) {
            void* const block = mine[mine.count() / 3];
            mine.remove(block);
            pool.deallocate(block);
        }
        EXPECT_EQ(pool.stats().blocks_live, 0U);
        EXPECT_EQ(pool.stats().bytes_taken, source.bytes());
    });
}

TYPED_TEST(pool_growth, continues_when_an_exhausted_source_has_memory_again)
{
    typename TestFixture::template grown<growth::fixed(8192)> pool(48, 0, this->heap);
    for (std::size_t round = 1; round < 20; ++round) {
        this->heap.fail_from(round % 4);
        this->exhaust(pool);
        this->blocks.verify();
        this->heap.fail_never();
        for (int i = 0; i < 10; ++i)
            this->blocks.add(pool.allocate(), {48});
    }
}

TYPED_TEST(pool_growth, fails_every_allocation_when_its_source_is_null)
{
    mallard::pool<null, TypeParam::of(pool_options{})> pool(48);
    EXPECT_EQ(pool.try_allocate(), nullptr);
    EXPECT_THROW(static_cast<void>(pool.allocate()), std::bad_alloc);
    EXPECT_EQ(pool.try_allocate(layout(1000)), nullptr);
    EXPECT_EQ(pool.stats().bytes_taken, 0U);
}

TYPED_TEST(pool_growth, returns_all_bytes_of_a_source_that_rounds_up)
{
    generous_source generous;
    using pool = typename TypeParam::template pool<
        pool_options{.chunk = 4096, .grow{.first = 16384, .limit = 500000}}, ref<generous_source>>;
    pool moved_from(48, 0, generous);
    for (int i = 0; i < 10; ++i)
        this->blocks.add(moved_from.allocate(), {48});
    pool nodes(std::move(moved_from));
    for (int round = 0; round < 3; ++round) {
        while (void* const block = nodes.try_allocate())
            this->blocks.add(block, {48});
        EXPECT_EQ(nodes.stats().bytes_taken, generous.bytes());
        EXPECT_EQ(nodes.stats().blocks_live, this->blocks.count());
        while (this->blocks.count() > 100) {
            void* const block = this->blocks[this->blocks.count() / 3];
            this->blocks.remove(block);
            nodes.deallocate(block);
        }
        nodes.trim();
        EXPECT_EQ(nodes.stats().bytes_taken, generous.bytes());
    }
    this->blocks.clear();
    nodes.release();
    EXPECT_EQ(generous.bytes(), 0U);
}

TYPED_TEST(pool_growth, returns_a_block_when_the_limit_leaves_no_room_for_its_array)
{
    generous_source generous;
    typename TypeParam::template pool<pool_options{.chunk = 1024, .grow = growth::none(1100)},
                                      ref<generous_source>>
        nodes(48, 0, generous);
    EXPECT_NE(nodes.try_allocate(), nullptr);
}

TYPED_TEST(pool_growth, uses_most_of_a_low_limit)
{
    this->template expect_use<growth{.limit = 16384}>();
    this->template expect_use<growth{.limit = 32768}>();
    this->template expect_use<growth{.limit = 65536}>();
    this->template expect_use<growth{.limit = 65536 + 512}>();
}

TYPED_TEST(pool_growth, returns_a_block_when_the_buffer_has_room_for_one_chunk_only)
{
    alignas(65536) static std::byte own[65536];
    typename TypeParam::template pool<pool_options{.grow = {.first = 65536}}, borrowed> nodes(
        48, 0, borrowed(own));
    EXPECT_NE(nodes.try_allocate(), nullptr);
}

/// A source that has memory for chunks but never for the array of recent frees.
struct no_arrays : counting_source {
    chunk try_take(layout l) noexcept
    {
        require(l.bytes != 0, "nobody asks for nothing");
        return l.align >= 16 ? counting_source::try_take(l) : chunk{};
    }
};

TEST(pool_growth, lets_an_ordered_pool_work_without_its_array_of_frees)
{
    no_arrays heap;
    pool<ref<no_arrays>, pool_options{.chunk = 4096}> nodes(48, 0, heap);
    model blocks;
    for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < 1000; ++i)
            blocks.add(nodes.allocate(), {48});
        while (blocks.count() > 100) {
            void* const block = blocks[blocks.count() / 3];
            blocks.remove(block);
            nodes.deallocate(block);
        }
        EXPECT_EQ(nodes.stats().blocks_live, 100U);
    }
}

} // namespace
