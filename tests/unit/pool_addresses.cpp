// Tests the functions that look up addresses in a pool: owns, classify, for_each.
#include "../support/kinds.hpp"
#include "../support/model.hpp"

#include <memory>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr pool_options small_chunks{.chunk = 1024, .grow = growth::fixed(4096)};

template <class Kind>
class pool_addresses : public ::testing::Test {
protected:
    using small_pool = typename Kind::template pool<small_chunks>;

    std::vector<void*> take(std::size_t count)
    {
        std::vector<void*> blocks(count);
        pool.allocate_batch(blocks);
        return blocks;
    }
    std::vector<void*> in_use()
    {
        std::vector<void*> seen;
        pool.for_each([&](void* block) { seen.push_back(block); });
        return seen;
    }

    failing_source heap;
    small_pool pool{40, 0, heap};
};
TYPED_TEST_SUITE(pool_addresses, kinds, kind_names);

TYPED_TEST(pool_addresses, outside_its_chunks_are_classified_as_a_miss)
{
    static int const global = 0;
    int const local = 0;
    auto const free_store = std::make_unique<int>();
    typename TestFixture::small_pool other(40, 0, this->heap);
    std::vector<const void*> const strangers{
        nullptr,          reinterpret_cast<void*>(~std::uintptr_t{0}),
        &global,          &local,
        free_store.get(), &this->pool,
        other.allocate()};
    for (std::size_t const taken : {0, 1000}) {
        this->take(taken);
        for (const void* const p : strangers) {
            EXPECT_FALSE(this->pool.owns(p));
            EXPECT_EQ(this->pool.classify(p), validity::miss);
        }
    }
}

TYPED_TEST(pool_addresses, are_valid_only_at_the_first_byte_of_a_block_in_use)
{
    for (void* const block : this->take(500)) {
        auto* const first = static_cast<std::byte*>(block);
        ASSERT_TRUE(this->pool.owns(first));
        ASSERT_EQ(this->pool.classify(first), validity::valid);
        for (std::size_t inside = 1; inside < 40; ++inside) {
            ASSERT_TRUE(this->pool.owns(first + inside));
            ASSERT_EQ(this->pool.classify(first + inside), validity::invalid);
        }
    }
}

TYPED_TEST(pool_addresses, are_invalid_after_a_free_and_valid_after_the_next_allocation)
{
    std::vector<void*> const blocks = this->take(500);
    for (void* const block : blocks) {
        this->pool.deallocate(block);
        ASSERT_EQ(this->pool.classify(block), validity::invalid);
        ASSERT_TRUE(this->pool.owns(block));
    }
    for (void* const block : this->take(500))
        ASSERT_EQ(this->pool.classify(block), validity::valid);
}

TYPED_TEST(pool_addresses, are_not_valid_where_no_block_is_in_use)
{
    std::vector<void*> blocks = this->take(100);
    for (std::size_t i = 0; i < 50; ++i)
        this->pool.deallocate(blocks[i]);
    std::size_t valid = 0;
    for (auto const& [data, c] : this->heap.live()) // headers, arrays, free and uncarved blocks
        for (std::size_t i = 0; i < c.bytes; ++i)
            valid += this->pool.classify(static_cast<std::byte*>(data) + i) == validity::valid;
    EXPECT_EQ(valid, 50U);
}

TYPED_TEST(pool_addresses, are_invalid_after_reset_and_a_miss_after_release)
{
    std::vector<void*> const blocks = this->take(500);
    this->pool.reset();
    for (void* const block : blocks)
        ASSERT_EQ(this->pool.classify(block), validity::invalid);
    this->pool.release();
    for (void* const block : blocks) {
        ASSERT_EQ(this->pool.classify(block), validity::miss);
        ASSERT_FALSE(this->pool.owns(block));
    }
}

TYPED_TEST(pool_addresses, move_with_the_pool)
{
    std::vector<void*> const blocks = this->take(500);
    auto moved = std::move(this->pool);
    for (void* const block : blocks) {
        ASSERT_EQ(this->pool.classify(block), validity::miss);
        ASSERT_EQ(moved.classify(block), validity::valid);
    }
}

TYPED_TEST(pool_addresses, of_large_blocks_are_owned_to_their_last_byte)
{
    auto* const large = static_cast<std::byte*>(this->pool.allocate(layout(1000)));
    EXPECT_TRUE(this->pool.owns(large));
    EXPECT_TRUE(this->pool.owns(large + 999));
    EXPECT_FALSE(this->pool.owns(large - 1));
    this->pool.deallocate(large, layout(1000));
    EXPECT_FALSE(this->pool.owns(large));
}

TYPED_TEST(pool_addresses, are_found_for_every_block_size)
{
    for (std::size_t const bytes : {1, 7, 24, 100, 1000, 4096, 65535, 65536, 70000, 1 << 20}) {
        typename TypeParam::template pool<> other(bytes, 0, this->heap);
        for (int i = 0; i < 20; ++i) {
            auto* const block = static_cast<std::byte*>(other.allocate());
            EXPECT_EQ(other.classify(block), validity::valid) << bytes;
            if (other.block_bytes() > 1) {
                EXPECT_EQ(other.classify(block + other.block_bytes() - 1), validity::invalid);
            }
        }
    }
}

TYPED_TEST(pool_addresses, of_blocks_in_use_are_visited_once_each_in_order)
{
    std::vector<void*> blocks = this->take(1000);
    for (std::size_t i = 0; i < 1000; i += 3)
        this->pool.deallocate(std::exchange(blocks[i], nullptr));
    std::erase(blocks, nullptr);
    std::sort(blocks.begin(), blocks.end());
    EXPECT_EQ(this->in_use(), blocks);
    EXPECT_EQ(this->in_use(), blocks) << "visiting changes nothing";
    this->pool.reset();
    EXPECT_TRUE(this->in_use().empty());
}

TYPED_TEST(pool_addresses, may_be_freed_by_the_visitor)
{
    this->take(5000);
    std::size_t seen = 0;
    this->pool.for_each([&](void* block) {
        if (seen++ % 4 != 0)
            this->pool.deallocate(block);
    });
    EXPECT_EQ(seen, 5000U);
    EXPECT_EQ(this->pool.stats().blocks_live, 1250U);
    EXPECT_EQ(this->in_use().size(), 1250U);
    this->pool.for_each([&](void* block) { this->pool.deallocate(block); });
    EXPECT_EQ(this->pool.stats().blocks_live, 0U);
    this->take(5000);
}

TYPED_TEST(pool_addresses, are_no_longer_visited_after_the_visitor_throws)
{
    this->take(1000);
    EXPECT_THROW(this->pool.for_each([](void*) { throw 1; }), int);
    EXPECT_EQ(this->in_use().size(), 1000U);
}

} // namespace
