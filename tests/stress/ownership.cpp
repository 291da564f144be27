// No block is allocated twice at the same time, whichever threads allocate and free.
#include "../support/kinds.hpp"
#include "../support/market.hpp"

#include <mallard/arena.hpp>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t threads = 4;

template <class Kind>
class shared_ownership : public ::testing::Test {
protected:
    template <pool_options O>
    void trade_in_a_pool(std::size_t block_bytes, std::size_t steps, demand wanted = {})
    {
        using pool = typename Kind::template pool<O>;
        auto const of = new_subject<pool>([&] { return pool(block_bytes, 0, heap); });
        trade(*of, wanted, threads, rounds(steps));
        EXPECT_EQ(of->stats().bytes_taken, heap.bytes());
    }

    failing_source heap; // checks in its destructor that all chunks were returned
};
TYPED_TEST_SUITE(shared_ownership, shared_kinds, kind_names);

TYPED_TEST(shared_ownership, is_exclusive_in_a_default_pool)
{
    this->template trade_in_a_pool<pool_options{}>(48, 1500);
}

TYPED_TEST(shared_ownership, is_exclusive_with_small_chunks_and_arrays)
{
    this->template trade_in_a_pool<pool_options{
        .chunk = 1024, .grow = growth::fixed(4096), .cached_bytes = 512}>(40, 1500);
}

TYPED_TEST(shared_ownership, is_exclusive_with_the_smallest_arrays)
{
    this->template trade_in_a_pool<pool_options{.cached_bytes = 0}>(24, 1500);
}

TYPED_TEST(shared_ownership, is_exclusive_in_a_pool_of_one_chunk)
{
    this->template trade_in_a_pool<pool_options{.grow = growth::none(30'000)}>(48, 1500,
                                                                               {.may_fail = true});
}

TYPED_TEST(shared_ownership, is_exclusive_up_to_a_limit)
{
    constexpr pool_options limited{.chunk = 4096, .grow = {.first = 8192, .limit = 100'000}};
    this->template trade_in_a_pool<limited>(200, 1500, {.may_fail = true});
}

TYPED_TEST(shared_ownership, is_exclusive_for_blocks_of_one_byte)
{
    this->template trade_in_a_pool<pool_options{}>(1, 1000);
}

TYPED_TEST(shared_ownership, is_exclusive_for_large_blocks)
{
    constexpr pool_options roomy{.grow = {.first = 65536, .limit = std::size_t{1} << 27}};
    this->template trade_in_a_pool<roomy>(40'000, 150);
}

template <class Kind>
class shared_multipool : public ::testing::Test {
protected:
    failing_source heap;
};
TYPED_TEST_SUITE(shared_multipool, growing_kinds, kind_names);

TYPED_TEST(shared_multipool, gives_each_block_to_one_thread)
{
    using multipool = typename TypeParam::template multipool<>;
    auto const of = new_subject<multipool>([&] { return multipool(this->heap); });
    trade(*of, {.batches = false, .largest = 4096, .large_one_in = 20}, threads, rounds(1000));
    EXPECT_EQ(of->stats().bytes_taken, this->heap.bytes());
}

TYPED_TEST(shared_multipool, gives_each_block_to_one_thread_on_an_arena)
{
    using arena = mallard::arena<ref<failing_source>>;
    using multipool = typename TypeParam::template multipool<arena, 1000>;
    auto const of = new_subject<multipool>([&] { return multipool(arena(this->heap)); });
    trade(*of, {.batches = false, .largest = 1000}, threads, rounds(1000));
}

} // namespace
