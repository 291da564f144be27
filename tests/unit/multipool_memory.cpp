// Tests the memory that a multipool uses for few blocks, and the order in which it allocates free
// blocks.
#include "../support/kinds.hpp"
#include "../support/model.hpp"

#include <mallard/allocator.hpp>

#include <list>
#include <random>

namespace {

using namespace mallard::testing;
using namespace mallard;

TEST(slabs_of_a_multipool, store_few_blocks_of_many_sizes_in_few_chunks)
{
    failing_source heap;
    multipool<ref<failing_source>> memory{ref(heap)};
    std::vector<void*> blocks;
    for (std::size_t bytes = 8; bytes <= 1024; bytes += 8)
        blocks.push_back(memory.allocate({bytes}));
    EXPECT_LE(heap.calls(), 5U + 5) << "groups of pools, and slabs";
    for (void* const block : blocks)
        EXPECT_EQ(memory.classify(block), validity::valid);
    EXPECT_EQ(memory.classify(static_cast<std::byte*>(blocks[9]) + 8), validity::invalid);
    for (std::size_t i = 0; i < blocks.size(); ++i)
        memory.deallocate(blocks[i], {8 * i + 8});
    EXPECT_EQ(memory.classify(blocks[9]), validity::invalid);
    EXPECT_TRUE(memory.owns(blocks[9]));
    EXPECT_EQ(memory.stats().blocks_live, 0U);
}

using in_turn = multipool<default_heap, multipool_options{.order = reuse::fifo}>;

/// Allocates `count` blocks, frees them in order and allocates again. Returns the number of blocks
/// that are allocated in the same order.
template <class Memory>
std::size_t in_order(Memory& memory, std::size_t count, layout l)
{
    std::vector<void*> blocks(count);
    for (void*& block : blocks)
        block = memory.allocate(l);
    for (void* const block : blocks)
        memory.deallocate(block, l);
    std::size_t same = 0;
    for (void* const block : blocks)
        same += memory.allocate(l) == block;
    return same;
}

TEST(reuse_in_a_multipool, by_fifo_allocates_a_page_of_blocks_in_the_order_they_were_freed)
{
    in_turn memory;
    EXPECT_EQ(in_order(memory, 64, {24}), 64U);
    EXPECT_EQ(in_order(memory, 4, {1000}), 4U);
    EXPECT_EQ(in_order(memory, 2, {5000}), 0U) << "larger than a page: the last freed block first";
    multipool<> last_first;
    EXPECT_EQ(in_order(last_first, 64, {24}), 0U);
}

TEST(reuse_in_a_multipool, by_fifo_keeps_nodes_in_address_order_when_lists_exchange_them)
{
    using list = std::list<int, allocator<int, in_turn>>;
    std::vector<in_turn> homes(100);
    std::vector<list> lists;
    for (in_turn& home : homes)
        lists.emplace_back(200, 1, home);
    std::mt19937 random(1);
    for (std::size_t i = 0; i < 100'000; ++i) {
        list& from = lists[random() % lists.size()];
        if (!from.empty()) {
            from.pop_front();
            lists[i % lists.size()].push_back(1);
        }
    }
    std::size_t steps = 0, forward = 0;
    for (list const& l : lists)
        for (auto at = l.begin(), next = std::next(at); next != l.end(); at = next++) {
            ++steps;
            forward += &*at < &*next && &*next - &*at <= 16; // within a cache line of 16 ints
        }
    EXPECT_GT(forward * 100, steps * 70); // it is 6 % if the last freed block is allocated first
}

TEST(slabs_of_a_multipool, are_returned_by_trim_when_they_are_idle)
{
    failing_source heap;
    multipool<ref<failing_source>> memory{ref(heap)};
    void* const kept = memory.allocate({24});
    std::vector<void*> blocks;
    while (memory.stats().bytes_taken < 100'000)
        blocks.push_back(memory.allocate({24}));
    void* const also_kept = memory.allocate({24});
    for (void* const block : blocks)
        memory.deallocate(block, {24});
    std::size_t const before = heap.bytes();
    memory.trim();
    EXPECT_LT(heap.bytes(), before);
    EXPECT_EQ(memory.stats().blocks_live, 2U);
    EXPECT_EQ(memory.classify(kept), validity::valid);
    memory.deallocate(kept, {24});
    memory.deallocate(also_kept, {24});
    ASSERT_EQ(memory.allocate({24}), also_kept) << "the block freed last";
    memory.deallocate(also_kept, {24});
    memory.trim();
    EXPECT_LE(heap.bytes(), 1100U) << "a group of pools";
    EXPECT_TRUE(memory.allocate({24}) != nullptr);
}

TEST(slabs_of_a_multipool, keep_their_free_blocks_if_a_trim_does_not_return_them)
{
    failing_source heap;
    multipool<ref<failing_source>> memory{ref(heap)};
    void* const kept = memory.allocate({24});
    std::vector<void*> freed;
    for (std::size_t const bytes : {8, 24, 64, 100}) // with gaps for alignment between the blocks
        freed.push_back(memory.allocate({bytes}));
    for (std::size_t i = 0; i < freed.size(); ++i)
        memory.deallocate(freed[i], {std::array<std::size_t, 4>{8, 24, 64, 100}[i]});
    std::size_t const idle = memory.stats().bytes_idle;
    memory.trim();
    memory.trim();
    EXPECT_EQ(memory.stats().bytes_idle, idle);
    EXPECT_EQ(memory.stats().blocks_live, 1U);
    EXPECT_EQ(memory.classify(kept), validity::valid);
    for (void* const block : freed)
        EXPECT_EQ(memory.classify(block), validity::invalid);
    std::size_t const calls = heap.calls();
    for (std::size_t const bytes : {8, 24, 64, 100})
        EXPECT_TRUE(memory.owns(memory.allocate({bytes})));
    EXPECT_EQ(heap.calls(), calls) << "all of them are cut from the slab";
}

TEST(slabs_of_a_multipool, keep_working_when_the_source_is_exhausted)
{
    failing_source heap;
    multipool<ref<failing_source>> memory{ref(heap)};
    void* const first = memory.allocate({24});
    heap.fail_from(1);
    while (memory.try_allocate({24}) != nullptr)
        ;
    EXPECT_THROW((void)memory.allocate({24}), std::bad_alloc);
    EXPECT_EQ(memory.classify(first), validity::valid);
    heap.fail_never();
    EXPECT_NE(memory.allocate({24}), nullptr);
}

} // namespace
