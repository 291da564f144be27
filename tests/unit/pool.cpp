// Behaviour of every pool, for each order and with or without checks.
#include "../support/kinds.hpp"
#include "../support/model.hpp"

#include <mallard/arena.hpp>
#include <mallard/sync.hpp>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

template <class Kind>
class any_pool : public ::testing::Test {
protected:
    template <pool_options O = pool_options{}>
    auto make(std::size_t bytes, std::size_t align = 0, growth_function custom = nullptr)
    {
        return typename Kind::template pool<O>(bytes, align, heap, custom);
    }

    /// Allocates `count` blocks into `blocks`.
    template <class Pool>
    void fill(Pool& pool, std::size_t count)
    {
        while (count-- > 0)
            blocks.add(pool.allocate(), {pool.block_bytes(), pool.block_align()});
    }
    template <class Pool>
    void empty(Pool& pool)
    {
        while (!blocks.empty()) {
            void* const block = blocks[blocks.count() / 2];
            blocks.remove(block);
            pool.deallocate(block);
        }
    }

    failing_source heap;
    model blocks;
};
TYPED_TEST_SUITE(any_pool, kinds, kind_names);

TYPED_TEST(any_pool, allocates_no_memory_before_the_first_block)
{
    auto pool = this->make(48);
    EXPECT_EQ(pool.stats().bytes_taken, 0U);
    pool.reset();
    pool.trim();
    pool.release();
    EXPECT_FALSE(pool.owns(&pool));
    pool.for_each([](void*) { FAIL(); });
    EXPECT_EQ(this->heap.calls(), 0U);
}

TYPED_TEST(any_pool, accepts_any_block_size_and_power_of_two_and_rounds_the_size_up)
{
    for (std::size_t bytes = 0; bytes < 70; ++bytes)
        for (std::size_t align : {0U, 1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
            auto pool = this->make(bytes, align);
            ASSERT_GE(pool.block_bytes(), std::max(bytes, std::size_t{1}));
            ASSERT_GE(pool.block_align(), align);
            ASSERT_TRUE(is_power_of_two(pool.block_align()));
            ASSERT_EQ(pool.block_bytes() % pool.block_align(), 0U);
            ASSERT_LT(pool.block_bytes(), std::max(bytes, std::size_t{8}) + pool.block_align());
        }
    EXPECT_EQ(this->make(100, 64).block_align(), 64U);
    EXPECT_EQ(this->make(100, 64).block_bytes(), 128U);
}

TYPED_TEST(any_pool, rejects_an_alignment_that_is_no_power_of_two)
{
    for (std::size_t align : {3U, 24U, 48U, 100U})
        EXPECT_DEATH(this->make(48, align), "mallard: alignment [0-9]+ is not a power of two");
}

TYPED_TEST(any_pool, aligns_blocks_to_the_largest_power_of_two_up_to_16_that_divides_their_size)
{
    EXPECT_EQ(this->make(24).block_align(), 8U);
    EXPECT_EQ(this->make(48).block_align(), 16U);
    EXPECT_EQ(this->make(4096).block_align(), 16U);
    bool const list = TypeParam::order == reuse::lifo; // whether a free block holds a link
    EXPECT_EQ(this->make(1).block_align(), list ? 8U : 1U);
    EXPECT_EQ(this->make(6).block_align(), list ? 8U : 2U);
    EXPECT_EQ(this->make(0).block_bytes(), list ? 8U : 1U);
}

TYPED_TEST(any_pool, has_blocks_of_every_odd_size)
{
    for (std::size_t const bytes :
         {0,  1,   2,   3,    5,    7,    9,    13,    31,    33,    63,
          65, 100, 513, 1000, 4095, 4097, 9999, 65535, 65536, 65537, 200001}) {
        auto pool = this->make(bytes);
        this->fill(pool, bytes < 1000 ? 3000 : 20);
        EXPECT_EQ(pool.stats().blocks_live, this->blocks.count());
        this->empty(pool);
        EXPECT_EQ(pool.stats().blocks_live, 0U);
    }
}

TYPED_TEST(any_pool, aligns_blocks_as_requested_up_to_2_mib)
{
    for (std::size_t align = 1; align <= std::size_t{2} << 20; align *= 2) {
        auto pool = this->make(24, align);
        this->fill(pool, align <= 4096 ? 200 : 9);
        this->empty(pool);
    }
}

TYPED_TEST(any_pool, fails_for_blocks_near_the_size_of_the_address_space_and_keeps_no_memory)
{
    constexpr std::size_t top = std::size_t{1} << 63;
    for (std::size_t const bytes : {most, most - 1, most - 7, most - 4096, top + 1, top, top - 1,
                                    top / 2 + 1, top / 2, top / 2 - 1, top / 4, top >> 15})
        for (std::size_t const align :
             {std::size_t{0}, std::size_t{1}, std::size_t{4096}, top / 2}) {
            auto pool = this->make(bytes, align);
            EXPECT_EQ(pool.try_allocate(), nullptr) << bytes;
            EXPECT_THROW(static_cast<void>(pool.allocate()), std::bad_alloc) << bytes;
            EXPECT_EQ(pool.stats().blocks_live, 0U);
        }
    for (std::size_t const align : {top, top / 2, top / 4, top >> 20}) {
        auto pool = this->make(16, align);
        EXPECT_EQ(pool.try_allocate(), nullptr) << align;
        EXPECT_THROW(static_cast<void>(pool.allocate()), std::bad_alloc) << align;
    }
    EXPECT_EQ(this->heap.bytes(), 0U);
}

TYPED_TEST(any_pool, leaves_the_content_of_blocks_alone_while_others_are_allocated_and_freed)
{
    auto pool = this->template make<pool_options{.chunk = 1024, .grow = growth::fixed(1024)}>(40);
    std::mt19937 random(1);
    for (int round = 0; round < 50; ++round) {
        this->fill(pool, random() % 500);
        for (std::size_t n = random() % (this->blocks.count() + 1); n > 0; --n) {
            void* const block = this->blocks[random() % this->blocks.count()];
            this->blocks.remove(block);
            pool.deallocate(block);
        }
    }
    this->blocks.verify();
}

TYPED_TEST(any_pool, reuses_freed_blocks_before_it_grows)
{
    auto pool = this->make(48);
    this->fill(pool, 20000);
    this->empty(pool);
    this->fill(pool, 20000); // now the array of recent frees has its final size
    std::size_t const taken = pool.stats().bytes_taken;
    for (int i = 0; i < 3; ++i) {
        this->empty(pool);
        this->fill(pool, 20000);
    }
    EXPECT_LE(pool.stats().bytes_taken, taken + 8192);
}

// --- batches

TYPED_TEST(any_pool, allocates_an_empty_batch_without_calling_the_source)
{
    auto pool = this->make(48);
    EXPECT_TRUE(pool.try_allocate_batch({}));
    pool.allocate_batch({});
    pool.deallocate_batch({});
    EXPECT_EQ(this->heap.calls(), 0U);
}

TYPED_TEST(any_pool, allocates_a_batch_of_distinct_blocks_and_frees_it)
{
    auto pool = this->make(48);
    for (std::size_t const count : {1, 2, 63, 64, 65, 1000, 30000}) {
        std::vector<void*> batch(count);
        pool.allocate_batch(batch);
        for (void* const block : batch)
            this->blocks.add(block, {48});
        EXPECT_EQ(pool.stats().blocks_live, count);
        for (void* const block : batch)
            this->blocks.remove(block);
        pool.deallocate_batch(batch);
        EXPECT_EQ(pool.stats().blocks_live, 0U);
    }
}

TYPED_TEST(any_pool, allocates_all_blocks_of_a_batch_or_none)
{
    auto pool = this->template make<pool_options{.chunk = 4096, .grow = {.limit = 50000}}>(48);
    this->fill(pool, 100);
    std::vector<void*> batch(2000);
    EXPECT_FALSE(pool.try_allocate_batch(batch));
    EXPECT_THROW(pool.allocate_batch(batch), std::bad_alloc);
    EXPECT_EQ(pool.stats().blocks_live, 100U);
    std::size_t count = 0;
    while (void* const block = pool.try_allocate())
        this->blocks.add(block, {48}), ++count;
    EXPECT_GT(count, 600U);
    this->empty(pool);
    batch.resize(100 + count);
    EXPECT_TRUE(pool.try_allocate_batch(batch)) << "what fits one by one fits at once";
    pool.deallocate_batch(batch);
}

TYPED_TEST(any_pool, allocates_no_block_of_a_batch_whichever_call_to_the_source_fails)
{
    for_each_refusal([](failing_source& source) {
        constexpr pool_options small{.chunk = 4096, .grow = growth::fixed(4096)};
        typename TypeParam::template pool<small> pool(48, 0, source);
        std::vector<void*> batch(1000);
        if (!pool.try_allocate_batch(batch)) {
            EXPECT_EQ(pool.stats().blocks_live, 0U);
            EXPECT_TRUE(pool.try_allocate_batch(batch));
        }
        EXPECT_EQ(pool.stats().blocks_live, 1000U);
        pool.deallocate_batch(batch);
    });
}

// --- calls with a layout

TYPED_TEST(any_pool, allocates_layouts_that_do_not_fit_a_block_from_the_source)
{
    auto pool = this->make(48);
    for (layout const l : {layout(0, 1), layout(1, 1), layout(48, 16), layout(40, 8), layout(49, 1),
                           layout(0, 32), layout(1, 4096), layout(100000, 2 << 20)}) {
        void* const block = pool.allocate(l);
        this->blocks.add(block, l);
        EXPECT_TRUE(pool.owns(block));
        bool const fits = l.bytes <= 48 && l.align <= 16;
        EXPECT_EQ(pool.classify(block), fits ? validity::valid : validity::miss);
        this->blocks.add(pool.try_allocate(l), l);
    }
    EXPECT_EQ(pool.stats().blocks_live, this->blocks.count());
    while (!this->blocks.empty()) {
        void* const block = this->blocks[0];
        pool.deallocate(block, this->blocks.remove(block));
    }
    EXPECT_EQ(pool.stats().blocks_live, 0U);
}

TYPED_TEST(any_pool, returns_a_large_block_when_it_is_freed_and_the_others_at_reset)
{
    auto pool = this->make(48);
    static_cast<void>(pool.allocate());
    std::size_t const before = this->heap.bytes();
    void* const large = pool.allocate(layout(10000));
    EXPECT_GT(this->heap.bytes(), before);
    pool.deallocate(large, layout(10000));
    EXPECT_EQ(this->heap.bytes(), before);
    for (std::size_t i = 0; i < 5; ++i)
        static_cast<void>(pool.allocate(layout(1000 * i + 100)));
    pool.reset();
    EXPECT_EQ(this->heap.bytes(), before);
}

TYPED_TEST(any_pool, fails_for_layouts_near_the_size_of_the_address_space)
{
    auto pool = this->make(48);
    for (std::size_t const bytes : {most, most - 63, most / 2 + 1, most / 2, most / 2 - 4096})
        for (std::size_t const align : {std::size_t{1}, std::size_t{64}, std::size_t{1} << 21}) {
            EXPECT_EQ(pool.try_allocate({bytes, align}), nullptr);
            EXPECT_THROW(static_cast<void>(pool.allocate({bytes, align})), std::bad_alloc);
        }
    EXPECT_EQ(this->heap.bytes(), 0U);
    EXPECT_EQ(pool.stats().blocks_live, 0U);
}

TEST(pool, propagates_the_exception_of_its_source)
{
    failing_resource upstream;
    pool<pmr_source> nodes(48, 0, &upstream);
    upstream.source.fail_from(1);
    std::vector<void*> batch(10);
    EXPECT_THROW(static_cast<void>(nodes.allocate()), refusal);
    EXPECT_THROW(nodes.allocate_batch(batch), refusal);
    EXPECT_THROW(static_cast<void>(nodes.allocate(layout(1000))), refusal);
    EXPECT_THROW(static_cast<void>(nodes.allocate(layout(most))), refusal);
    EXPECT_EQ(nodes.try_allocate(), nullptr);
    EXPECT_FALSE(nodes.try_allocate_batch(batch));
    EXPECT_EQ(nodes.try_allocate(layout(1000)), nullptr);
    upstream.source.fail_never();
    EXPECT_NE(nodes.allocate(), nullptr);
}

TEST(pool, visits_blocks_with_a_callable_that_cannot_be_copied)
{
    mallard::pool<> blocks(48);
    static_cast<void>(blocks.allocate());
    int seen = 0;
    blocks.for_each([&seen, alone = std::make_unique<int>(1)](void*) { seen += *alone; });
    EXPECT_EQ(seen, 1);
}

TEST(pool, that_owns_an_arena_releases_by_one_call_to_the_arena)
{
    counting_source heap;
    using arena = mallard::arena<ref<counting_source>>;
    mallard::pool<arena> blocks(48, 0, arena(heap));
    for (int round = 0; round < 100; ++round) {
        for (int i = 0; i < 3000; ++i)
            static_cast<void>(blocks.allocate());
        static_cast<void>(blocks.allocate(layout(100'000)));
        blocks.release();
        EXPECT_EQ(heap.bytes(), 0U);
        statistics const s = blocks.stats();
        EXPECT_EQ(s,
                  (statistics{.growths = s.growths, .refills = s.refills, .flushes = s.flushes}));
    }
}

TEST(pool, can_have_another_allocator_as_its_source)
{
    failing_source heap;
    multipool<ref<failing_source>> below{ref(heap)};
    {
        pool<ref<multipool<ref<failing_source>>>,
             pool_options{.chunk = 1024, .grow = growth::fixed(1024)}>
            nodes(48, 0, ref(below));
        for (int i = 0; i < 1000; ++i)
            EXPECT_NE(nodes.allocate(), nullptr);
        EXPECT_GT(below.stats().blocks_live, 0U);
    }
    EXPECT_EQ(below.stats().blocks_live, 0U);
}

TEST(pool, a_lock_free_pool_owns_exactly_the_bytes_of_its_blocks)
{
    pool<default_heap,
         pool_options{.block = 64, .grow = growth::none(1 << 14), .threads = sync::lock_free}>
        blocks;
    EXPECT_FALSE(blocks.owns(&blocks));
    std::vector<std::byte*> all;
    while (void* const block = blocks.try_allocate())
        all.push_back(static_cast<std::byte*>(block));
    auto const [first, last] = std::ranges::minmax(all);
    EXPECT_EQ(last - first, static_cast<std::ptrdiff_t>(64 * (all.size() - 1)));
    EXPECT_TRUE(blocks.owns(first) && blocks.owns(last + 63));
    EXPECT_FALSE(blocks.owns(first - 1));
    EXPECT_FALSE(blocks.owns(last + 64));
}

} // namespace
