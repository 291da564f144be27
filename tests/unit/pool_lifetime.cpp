// Tests the memory that a pool keeps and the memory that it returns to its source: reset, release,
// trim, moves.
#include "../support/kinds.hpp"
#include "../support/model.hpp"

#include <type_traits>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr pool_options small_chunks{.chunk = 1024, .grow = growth::fixed(4096)};

template <class Kind>
class pool_lifetime : public ::testing::Test {
protected:
    using small_pool = typename Kind::template pool<small_chunks>;

    void* take(small_pool& from)
    {
        void* const block = from.allocate();
        blocks.add(block, {from.block_bytes(), from.block_align()});
        return block;
    }
    void fill(small_pool& from, std::size_t count)
    {
        while (count-- > 0)
            take(from);
    }
    void give(small_pool& to, void* block)
    {
        blocks.remove(block);
        to.deallocate(block);
    }

    failing_source heap;
    model blocks;
};
TYPED_TEST_SUITE(pool_lifetime, kinds, kind_names);

TYPED_TEST(pool_lifetime, keeps_all_memory_at_reset_and_refills_without_the_source)
{
    typename TestFixture::small_pool pool(40, 0, this->heap);
    this->fill(pool, 1000);
    this->blocks.clear();
    for (int round = 0; round < 3; ++round) {
        pool.reset();
        std::size_t const calls = this->heap.calls();
        EXPECT_EQ(this->heap.gives(), 0U);
        EXPECT_EQ(pool.stats().blocks_live, 0U);
        this->fill(pool, 1000);
        this->blocks.clear();
        EXPECT_EQ(this->heap.calls(), calls);
    }
}

TYPED_TEST(pool_lifetime, allocates_the_first_addresses_again_after_reset)
{
    typename TestFixture::small_pool pool(40, 0, this->heap);
    void* const first = pool.allocate();
    for (int i = 0; i < 10; ++i)
        static_cast<void>(pool.allocate());
    pool.reset();
    EXPECT_EQ(pool.allocate(), first);
}

TYPED_TEST(pool_lifetime, returns_all_memory_at_release_and_can_be_used_again)
{
    typename TestFixture::small_pool pool(40, 0, this->heap);
    for (int round = 0; round < 3; ++round) {
        this->fill(pool, 1000);
        static_cast<void>(pool.allocate(layout(5000)));
        this->blocks.clear();
        pool.release();
        EXPECT_EQ(this->heap.bytes(), 0U);
        EXPECT_EQ(pool.stats().bytes_taken, 0U);
    }
    pool.release();
}

TYPED_TEST(pool_lifetime, restarts_its_growth_after_release)
{
    typename TypeParam::template pool<> pool(40, 0, this->heap);
    std::vector<std::size_t> first, second;
    for (auto* const asked : {&first, &second}) {
        std::size_t const calls = this->heap.calls();
        for (int i = 0; i < 20000; ++i)
            static_cast<void>(pool.allocate());
        for (std::size_t i = calls; i < this->heap.calls(); ++i)
            asked->push_back(this->heap.asked()[i].bytes);
        pool.release();
    }
    EXPECT_EQ(first, second);
}

TYPED_TEST(pool_lifetime, trims_all_memory_when_no_block_is_in_use)
{
    typename TestFixture::small_pool pool(40, 0, this->heap);
    this->fill(pool, 1000);
    while (!this->blocks.empty())
        this->give(pool, this->blocks[0]);
    pool.trim();
    EXPECT_EQ(this->heap.bytes(), 0U);
    this->fill(pool, 10);
    this->blocks.clear();
}

TYPED_TEST(pool_lifetime, trims_only_chunks_without_a_block_in_use)
{
    typename TestFixture::small_pool pool(40, 0, this->heap);
    this->fill(pool, 2000);
    void* const kept[] = {this->blocks[0], this->blocks[777], this->blocks[1999]};
    for (void* const block : this->blocks.ascending([](layout) { return true; }))
        if (std::find(std::begin(kept), std::end(kept), block) == std::end(kept))
            this->give(pool, block);
    pool.trim();
    EXPECT_LE(this->heap.bytes(), 3 * 4096U);
    EXPECT_EQ(pool.stats().blocks_live, 3U);
    for (void* const block : kept)
        EXPECT_EQ(pool.classify(block), validity::valid);
    this->blocks.verify();

    this->fill(pool, 2000);
    this->blocks.verify();
    while (!this->blocks.empty())
        this->give(pool, this->blocks[this->blocks.count() - 1]);
    EXPECT_EQ(pool.stats().blocks_live, 0U);
}

TYPED_TEST(pool_lifetime, keeps_as_many_idle_bytes_as_the_argument_of_trim_allows)
{
    typename TestFixture::small_pool pool(40, 0, this->heap);
    this->fill(pool, 2000);
    while (!this->blocks.empty())
        this->give(pool, this->blocks[0]);
    std::size_t const all = this->heap.bytes();
    pool.trim(std::numeric_limits<std::size_t>::max());
    EXPECT_GE(this->heap.bytes(), all - 8192) << "at most the array of recent frees";
    for (std::size_t const keep : {20000, 8192, 8191, 4096, 1, 0}) {
        pool.trim(keep);
        EXPECT_LE(this->heap.bytes(), keep);
        EXPECT_GT(this->heap.bytes() + 4096, keep);
        EXPECT_EQ(pool.stats().blocks_live, 0U);
    }
    EXPECT_EQ(this->heap.bytes(), 0U);
}

TYPED_TEST(pool_lifetime, trims_a_pool_that_was_reset)
{
    typename TestFixture::small_pool pool(40, 0, this->heap);
    this->fill(pool, 2000);
    this->blocks.clear();
    pool.reset();
    void* const one = this->take(pool);
    pool.trim();
    EXPECT_LE(this->heap.bytes(), 4096U);
    EXPECT_EQ(pool.classify(one), validity::valid);
    this->fill(pool, 2000);
}

TYPED_TEST(pool_lifetime, accepts_frees_after_a_trim)
{
    typename TestFixture::small_pool pool(40, 0, this->heap);
    this->fill(pool, 2000);
    for (int i = 0; i < 500; ++i)
        this->give(pool, this->blocks[0]);
    pool.trim();
    while (!this->blocks.empty()) // makes no request for the array of recent frees
        this->give(pool, this->blocks[0]);
    EXPECT_EQ(pool.stats().blocks_live, 0U);
    pool.trim();
    EXPECT_EQ(this->heap.bytes(), 0U);
}

TYPED_TEST(pool_lifetime, moves_with_its_blocks_and_leaves_an_empty_usable_pool)
{
    using pool = typename TestFixture::small_pool;
    static_assert(std::is_nothrow_move_constructible_v<pool>);
    pool a(40, 0, this->heap);
    this->fill(a, 1000);
    for (int i = 0; i < 100; ++i)
        this->give(a, this->blocks[0]);
    static_cast<void>(a.allocate(layout(5000)));
    statistics const before = a.stats();

    pool b(std::move(a));
    EXPECT_EQ(a.stats().bytes_taken, 0U);
    EXPECT_EQ(b.stats().blocks_live, before.blocks_live);
    EXPECT_EQ(b.stats().bytes_taken, before.bytes_taken);
    EXPECT_EQ(a.block_bytes(), b.block_bytes());
    for (int i = 0; i < 300; ++i) // frees from both lists alternately
        this->take(i % 2 == 0 ? a : b);
    this->blocks.verify();
}

TYPED_TEST(pool_lifetime, returns_its_own_memory_before_another_pool_is_moved_into_it)
{
    using pool = typename TestFixture::small_pool;
    pool a(40, 0, this->heap), b(24, 0, this->heap);
    this->fill(a, 1000);
    for (int i = 0; i < 1000; ++i)
        static_cast<void>(b.allocate());
    std::size_t const of_a = a.stats().bytes_taken;
    b = std::move(a);
    EXPECT_EQ(this->heap.bytes(), of_a);
    EXPECT_EQ(b.block_bytes(), 40U);
    while (!this->blocks.empty())
        this->give(b, this->blocks[0]);
    a = std::move(b);
    EXPECT_EQ(a.stats().bytes_taken, this->heap.bytes());
}

TYPED_TEST(pool_lifetime, survives_a_move_to_itself)
{
    typename TestFixture::small_pool pool(40, 0, this->heap);
    this->fill(pool, 100);
    auto& same = pool;
    pool = std::move(same);
    EXPECT_EQ(pool.stats().blocks_live, 100U);
    this->fill(pool, 100);
}

TYPED_TEST(pool_lifetime, keeps_its_growth_rule_when_it_is_moved_from)
{
    growth_function const custom = [](std::size_t, std::size_t) noexcept {
        return std::size_t{3072};
    };
    typename TestFixture::small_pool a(40, 16, this->heap, custom);
    static_cast<void>(a.allocate());
    typename TestFixture::small_pool b(std::move(a));
    static_cast<void>(a.allocate());
    static_cast<void>(b.allocate());
    EXPECT_EQ(this->heap.asked().back().bytes, 3072U);
}

} // namespace
