// Tests the order in which a pool allocates blocks, and the memory that it does not touch.
#include "../support/kinds.hpp"
#include "../support/model.hpp"

#include <random>

// The function exists only in programs built with AddressSanitizer.
extern "C" [[gnu::weak]] int __asan_address_is_poisoned(const volatile void*);

namespace {

using namespace mallard::testing;
using namespace mallard;

template <class Kind>
class pool_order : public ::testing::Test {
protected:
    failing_source heap;
};
TYPED_TEST_SUITE(pool_order, kinds, kind_names);

template <class Pool>
std::vector<void*> take(Pool& pool, std::size_t count)
{
    std::vector<void*> blocks(count);
    for (void*& block : blocks)
        block = pool.allocate();
    return blocks;
}

std::vector<void*> shuffled(std::vector<void*> blocks)
{
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
    return blocks;
}

/// Returns the percentage of neighbouring pairs in ascending order.
std::size_t ascending(const std::vector<void*>& blocks)
{
    std::size_t count = 0;
    for (std::size_t i = 1; i < blocks.size(); ++i)
        count += blocks[i - 1] < blocks[i];
    return count * 100 / (blocks.size() - 1);
}

// AddressSanitizer does not check this function, because it reads free blocks, which are poisoned.
[[gnu::no_sanitize_address]] bool holds(const void* block, std::size_t bytes, unsigned char value)
{
    bool same = true;
    for (std::size_t i = 0; i < bytes; ++i)
        same = same && static_cast<const unsigned char*>(block)[i] == value;
    return same;
}

TYPED_TEST(pool_order, allocates_untouched_blocks_in_address_order)
{
    for (std::size_t const bytes : {1, 8, 18, 48, 64, 500, 4096, 70000}) {
        typename TypeParam::template pool<pool_options{.grow = growth::none(4 << 20)}> pool(
            bytes, 0, this->heap);
        std::vector<void*> const blocks = take(pool, bytes > 1000 ? 30 : 3000);
        EXPECT_TRUE(std::is_sorted(blocks.begin(), blocks.end())) << bytes;
    }
}

TYPED_TEST(pool_order, allocates_forwards_through_each_new_chunk)
{
    typename TypeParam::template pool<> pool(48, 0, this->heap);
    EXPECT_GE(ascending(take(pool, 50000)), 99U);
}

TYPED_TEST(pool_order, allocates_in_address_order_again_after_reset)
{
    typename TypeParam::template pool<> pool(48, 0, this->heap);
    for (void* const block : shuffled(take(pool, 20000)))
        pool.deallocate(block);
    pool.reset();
    EXPECT_GE(ascending(take(pool, 20000)), 99U);
}

TYPED_TEST(pool_order, allocates_the_last_few_freed_blocks_first)
{
    typename TypeParam::template pool<> pool(48, 0, this->heap);
    std::vector<void*> blocks = shuffled(take(pool, 20));
    for (void* const block : blocks)
        pool.deallocate(block);
    std::reverse(blocks.begin(), blocks.end());
    EXPECT_EQ(take(pool, 20), blocks);
}

TEST(pool_order, a_lifo_pool_allocates_the_last_freed_block_first)
{
    pool<default_heap, pool_options{.order = reuse::lifo}> pool(48);
    std::vector<void*> blocks = shuffled(take(pool, 20000));
    for (void* const block : blocks)
        pool.deallocate(block);
    std::reverse(blocks.begin(), blocks.end());
    EXPECT_EQ(take(pool, 20000), blocks);
}

TEST(pool_order, of_ordered_allocates_scattered_freed_blocks_in_address_order)
{
    pool<> pool(48);
    for (void* const block : shuffled(take(pool, 50000)))
        pool.deallocate(block);
    EXPECT_GE(ascending(take(pool, 50000)), 90U);
}

TEST(pool_order, of_ordered_neither_reads_nor_writes_a_free_block)
{
    for (std::size_t const bytes : {1, 8, 48, 200}) {
        pool<> pool(bytes);
        std::vector<void*> const blocks = shuffled(take(pool, 5000));
        for (void* const block : blocks)
            std::memset(block, 0x77, bytes);
        for (void* const block : blocks)
            pool.deallocate(block);
        for (void* const block : blocks)
            ASSERT_TRUE(holds(block, bytes, 0x77));
        model again; // what is written to free blocks does not disturb the pool
        for (void* const block : take(pool, 5000))
            again.add(block, {bytes, 1});
    }
}

// --- memory that was never allocated has never been touched

TYPED_TEST(pool_order, touches_one_or_two_pages_for_the_first_block)
{
    for (std::size_t const bytes : {8, 48, 1000, 9000}) {
        typename TypeParam::template pool<pool_options{.grow = growth::fixed(1 << 20)}> pool(
            bytes, 0, this->heap);
        static_cast<void>(pool.allocate());
        EXPECT_GE(this->heap.bytes(), std::size_t{1} << 20);
        EXPECT_LT(this->heap.written(), 2 * page_bytes) << bytes;
    }
}

TYPED_TEST(pool_order, touches_little_more_memory_than_its_blocks)
{
    typename TypeParam::template pool<pool_options{.grow = growth::fixed(1 << 20)}> pool(
        64, 0, this->heap);
    for (std::size_t const count : {10, 100, 1000, 5000}) {
        for (void* const block : take(pool, count))
            std::memset(block, 0, 64);
        std::size_t const given = pool.stats().blocks_live * 64;
        EXPECT_LT(this->heap.written(), given + given / 50 + 3 * page_bytes);
    }
}

TYPED_TEST(pool_order, touches_no_further_memory_in_reset_trim_or_a_failed_allocation)
{
    typename TypeParam::template pool<pool_options{.grow = {.first = 1 << 20, .limit = 1 << 23}}>
        pool(1 << 18, 0, this->heap);
    while (pool.try_allocate() != nullptr) {}
    std::size_t const written = this->heap.written();
    EXPECT_LT(written, 2 * page_bytes);
    pool.reset();
    static_cast<void>(pool.allocate());
    pool.trim();
    EXPECT_LE(this->heap.written(), written);
}

// --- memory that is poisoned for AddressSanitizer

class poison : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (__asan_address_is_poisoned == nullptr)
            GTEST_SKIP() << "not built with AddressSanitizer";
    }

    /// Returns the number of poisoned bytes among the `bytes` bytes from `p` on.
    static std::size_t poisoned(const void* p, std::size_t bytes)
    {
        std::size_t count = 0;
        for (std::size_t i = 0; i < bytes; ++i)
            count += __asan_address_is_poisoned(static_cast<const char*>(p) + i) != 0;
        return count;
    }
};
template <class Kind>
class pool_poison : public poison {};
TYPED_TEST_SUITE(pool_poison, kinds, kind_names);

TYPED_TEST(pool_poison, covers_every_byte_of_a_free_block)
{
    typename TypeParam::template pool<pool_options{}, default_heap> pool(48);
    std::vector<void*> const blocks = take(pool, 3000);
    for (std::size_t i = 0; i < blocks.size(); i += 2)
        pool.deallocate(blocks[i]);
    for (std::size_t i = 0; i < blocks.size(); ++i)
        ASSERT_EQ(this->poisoned(blocks[i], 48), i % 2 == 0 ? 48U : 0U) << i;
    pool.reset();
    for (void* const block : blocks)
        ASSERT_EQ(this->poisoned(block, 48), 48U);
    EXPECT_EQ(this->poisoned(pool.allocate(), 48), 0U);
}

TYPED_TEST(pool_poison, covers_blocks_that_were_never_allocated)
{
    typename TypeParam::template pool<pool_options{.grow = growth::none(60000)}, default_heap> pool(
        48);
    auto* const block = static_cast<std::byte*>(pool.allocate());
    EXPECT_EQ(this->poisoned(block, 48), 0U);
    EXPECT_EQ(this->poisoned(block + 48, 40000), 40000U);
}

// The header of a chunk is between its blocks, at a place that depends on the address of the chunk.
TYPED_TEST(pool_poison, covers_exactly_the_free_blocks_for_every_block_size_in_every_chunk)
{
    failing_source heap;
    for (std::size_t bytes = 1; bytes < 600; bytes += bytes < 64 ? 1 : 7) {
        typename TypeParam::template pool<pool_options{.grow =
                                                           growth::fixed(std::size_t{64} << 16)}>
            pool(bytes, 0, heap);
        std::size_t const count = (std::size_t{60} << 16) / pool.block_bytes();
        void* last = nullptr;
        for (std::size_t i = 0; i < count; ++i)
            last = pool.allocate();
        EXPECT_EQ(this->poisoned(last, bytes), 0U);
        pool.deallocate(last);
        EXPECT_EQ(this->poisoned(last, bytes), bytes);
    }
}

} // namespace
