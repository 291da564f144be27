// Tests pools without a heap: in a buffer inside of the pool, or in a buffer of the caller.
#include "../support/kinds.hpp"
#include "../support/model.hpp"

#include <mallard/fixed_pool.hpp>
#include <mallard/multipool.hpp>
#include <mallard/slot_map.hpp>

#include <array>
#include <memory>

namespace {

using namespace mallard::testing;
using namespace mallard;

constinit pool<buffer<8192>, pool_options{.block = 32, .grow = growth::none(8192)}> ordered_pool;
constinit pool<buffer<8192>,
               pool_options{.block = 32, .grow = growth::none(8192), .order = reuse::lifo}>
    lifo_pool;
constinit pool<default_heap, pool_options{.block = 32}> heap_pool;
constinit pool<> sized_pool(32);
constinit multipool<> static_multipool;

template <class Allocator>
void expect_service(Allocator& allocator, std::size_t count)
{
    model blocks;
    for (std::size_t i = 0; i < count; ++i)
        blocks.add(allocator.allocate(layout(32)), layout(32));
    while (!blocks.empty()) {
        void* const block = blocks[0];
        blocks.remove(block);
        allocator.deallocate(block, layout(32));
    }
}

TEST(pool_fixed, is_constant_initialised_and_works_immediately)
{
    expect_service(ordered_pool, 200);
    expect_service(lifo_pool, 200);
    expect_service(heap_pool, 1000);
    expect_service(sized_pool, 1000);
    expect_service(static_multipool, 1000);
}

/// A test case: a pool of `count` blocks of `block` bytes.
struct capacity {
    std::size_t block, align, count;
};
constexpr std::array capacities{capacity{1, 0, 1000}, capacity{24, 0, 65}, capacity{48, 0, 11},
                                capacity{16, 64, 33}, capacity{100, 4096, 3}};

template <class Kind, capacity C>
constexpr pool_options options_for(std::size_t bytes)
{
    return Kind::of({.block = C.block, .align = C.align, .grow = growth::none(bytes)});
}

/// Returns the bytes that are enough, according to `bytes_for`.
template <class Kind, capacity C>
constexpr std::size_t enough = pool<null, options_for<Kind, C>(1)>::bytes_for(C.count);

template <class Kind, capacity C, source S>
using bounded_pool = pool<S, options_for<Kind, C>(enough<Kind, C>)>;

/// Allocates at most `count` blocks and frees them. Returns the number of blocks.
template <class Pool>
std::size_t serve(Pool& pool, std::size_t count)
{
    model blocks;
    while (blocks.count() < count) {
        void* const block = pool.try_allocate();
        if (block == nullptr)
            break;
        blocks.add(block, {pool.block_bytes(), pool.block_align()});
    }
    std::size_t const served = blocks.count();
    while (!blocks.empty()) {
        void* const block = blocks[blocks.count() / 2];
        blocks.remove(block);
        pool.deallocate(block);
    }
    return served;
}

/// Expects the same number of blocks at first, after frees, and after each function that could lose
/// a block.
template <class Pool>
std::vector<std::size_t> serve_for_life(Pool& pool, std::size_t count)
{
    std::vector<std::size_t> served{serve(pool, count), serve(pool, count)};
    pool.reset();
    served.push_back(serve(pool, count));
    pool.trim();
    served.push_back(serve(pool, count));
    pool.release();
    served.push_back(serve(pool, count));
    return served;
}

/// Calls `f.operator()<capacity>()` for each of `capacities`.
template <class F>
void for_each_capacity(F f)
{
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
        (f.template operator()<capacities[Index]>(), ...);
    }(std::make_index_sequence<capacities.size()>());
}

template <class Kind>
class pool_fixed : public ::testing::Test {};
TYPED_TEST_SUITE(pool_fixed, kinds, kind_names);

TYPED_TEST(pool_fixed, in_a_buffer_at_any_address_has_room_for_the_count_passed_to_bytes_for)
{
    for_each_capacity([]<capacity C>() {
        using pool = bounded_pool<TypeParam, C, buffer<enough<TypeParam, C>>>;
        // The addresses are multiples of the alignment of the pool object, not of the alignment of
        // its blocks.
        constexpr std::size_t step = alignof(pool), places = 8;
        std::unique_ptr<std::byte[]> const memory(new std::byte[sizeof(pool) + places * step]);
        for (std::size_t place = 0; place < places; ++place) {
            std::byte* const at = align_up(memory.get(), step) + place * step;
            pool* const fixed = std::construct_at(reinterpret_cast<pool*>(at));
            EXPECT_EQ(serve_for_life(*fixed, C.count), std::vector<std::size_t>(5, C.count))
                << C.block << " at " << C.align;
            std::destroy_at(fixed);
        }
    });
}

TYPED_TEST(pool_fixed, holds_at_least_as_many_blocks_as_its_type_says)
{
    mallard::fixed_pool<48, 100, TypeParam::order, TypeParam::checks> fixed;
    for (std::size_t const served : serve_for_life(fixed, 100))
        EXPECT_EQ(served, 100U);
}

TYPED_TEST(pool_fixed, fails_for_a_layout_that_does_not_fit_a_block_and_keeps_its_memory_for_blocks)
{
    mallard::fixed_pool<64, 100, TypeParam::order, TypeParam::checks> fixed;
    for (std::size_t const bytes : {65, 100, 1000, 6000}) {
        EXPECT_EQ(fixed.try_allocate({bytes, 8}), nullptr) << bytes;
        EXPECT_THROW(static_cast<void>(fixed.allocate(layout(bytes, 8))), std::bad_alloc);
    }
    for (std::size_t const served : serve_for_life(fixed, 100))
        EXPECT_EQ(served, 100U);
    fixed.release();
    EXPECT_EQ(fixed.try_allocate(layout(8, 256)), nullptr);
    EXPECT_EQ(serve(fixed, 100), 100U);
}

TYPED_TEST(pool_fixed, serves_larger_layouts_from_the_rest_of_a_borrowed_buffer)
{
    constexpr capacity C = capacities[3];
    alignas(64) std::byte own[enough<TypeParam, C> + 2000];
    bounded_pool<TypeParam, C, borrowed> fixed{borrowed(own)};
    void* const large = fixed.allocate(layout(1500, 8));
    EXPECT_EQ(fixed.try_allocate(layout(1500, 8)), nullptr);
    EXPECT_EQ(serve(fixed, C.count), C.count);
    fixed.deallocate(large, layout(1500, 8));
    EXPECT_EQ(serve(fixed, C.count), C.count);
}

TYPED_TEST(pool_fixed, in_a_borrowed_buffer_has_room_for_the_count_passed_to_bytes_for)
{
    constexpr capacity C = capacities[3];
    alignas(void*) std::byte bytes[enough<TypeParam, C> + 64];
    for (std::size_t begin = 0; begin < 64; begin += alignof(void*)) {
        std::span<std::byte> const own(bytes + begin, enough<TypeParam, C>);
        bounded_pool<TypeParam, C, borrowed> fixed{borrowed(own)};
        EXPECT_EQ(serve_for_life(fixed, C.count), std::vector<std::size_t>(5, C.count)) << begin;
    }
}

/// Pools with the minimum bytes that a pool that grows needs for one block. The files of nocompile/
/// show that a type with one byte less does not compile.
using least_ordered = pool<buffer<131056>, pool_options{.block = 48}>;
using least_lifo = pool<buffer<176>, pool_options{.block = 48, .order = reuse::lifo}>;
using least_multipool = multipool<buffer<1048>>;
using least_slot_map = slot_map<long, key32, buffer<12552>>;

template <class Pool>
void expect_a_block_at_every_address(std::size_t bytes, std::size_t align)
{
    std::size_t const step = alignof(std::max_align_t);
    std::unique_ptr<std::byte[]> const memory(new std::byte[bytes + align]);
    for (std::size_t begin = 0; begin < align; begin += 7 * step) {
        Pool pool{borrowed({align_up(memory.get(), step) + begin, bytes})};
        ASSERT_NE(pool.try_allocate(layout(8)), nullptr) << begin;
    }
}

TEST(pool_in_the_smallest_buffer, has_a_block_at_every_address)
{
    static_assert(sizeof(least_ordered) > 131056 && sizeof(least_lifo) > 176);
    expect_a_block_at_every_address<pool<borrowed, pool_options{.block = 48}>>(131056, 1 << 16);
    expect_a_block_at_every_address<
        pool<borrowed, pool_options{.block = 48, .order = reuse::lifo}>>(176, 64);
    least_multipool memory;
    EXPECT_NE(memory.try_allocate({8, 8}), nullptr);
    least_slot_map numbers;
    EXPECT_TRUE(numbers.try_emplace(7));
}

TYPED_TEST(pool_fixed, from_the_heap_requests_no_more_than_bytes_for_returns)
{
    constexpr capacity C = capacities[3];
    counting_source heap;
    bounded_pool<TypeParam, C, ref<counting_source>> fixed{ref(heap)};
    EXPECT_EQ(serve_for_life(fixed, C.count), std::vector<std::size_t>(5, C.count));
    EXPECT_LE(heap.bytes_peak(), (enough<TypeParam, C>));
}

TYPED_TEST(pool_fixed, needs_few_bytes_in_addition_to_its_blocks)
{
    for_each_capacity([]<capacity C>() {
        auto const shape = slot_shape::of(C.block, C.align, TypeParam::of({}).block_min());
        std::size_t const blocks = C.count * shape.bytes;
        EXPECT_LE((enough<TypeParam, C>), blocks + C.count / 2 + shape.align + 1024);
    });
}

TYPED_TEST(pool_fixed, saturates_the_result_of_bytes_for_for_huge_counts)
{
    using pool = mallard::pool<null, TypeParam::of({.block = 48})>;
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    EXPECT_GE(pool::bytes_for(most), most - 4096);
    EXPECT_GE(pool::bytes_for(most / 48 + 1), most - 4096);
    EXPECT_GE(pool::bytes_for(most / 50), most / 50 * 48);
    EXPECT_LT(pool::bytes_for(0), 4096U);
}

} // namespace
