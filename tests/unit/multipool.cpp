#include "../support/kinds.hpp"
#include "../support/model.hpp"

#include <mallard/arena.hpp>

#include <random>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

template <class Kind>
class any_multipool : public ::testing::Test {
protected:
    template <class M>
    void* take(M& from, layout l)
    {
        void* const block = from.allocate(l);
        blocks.add(block, l);
        return block;
    }
    template <class M>
    void give(M& to, void* block)
    {
        to.deallocate(block, blocks.remove(block));
    }
    /// Allocates `count` blocks of a few hundred bytes.
    template <class M>
    void fill(M& from, std::size_t count)
    {
        std::mt19937 random(1);
        while (count-- > 0)
            take(from, {random() % 400, std::size_t{1} << random() % 6});
    }

    failing_source heap;
    typename Kind::template multipool<> memory{ref(heap)};
    model blocks;
};
TYPED_TEST_SUITE(any_multipool, kinds, kind_names);

TYPED_TEST(any_multipool, allocates_no_memory_before_the_first_block)
{
    this->memory.reset();
    this->memory.trim();
    this->memory.release();
    EXPECT_EQ(this->memory.stats(), statistics{});
    EXPECT_EQ(this->heap.calls(), 0U);
}

TYPED_TEST(any_multipool, has_blocks_of_every_size_with_little_waste)
{
    for (std::size_t bytes = 1; bytes <= 4096; ++bytes) {
        std::size_t const before = this->memory.stats().bytes_live;
        this->take(this->memory, {bytes, 1});
        std::size_t const waste = this->memory.stats().bytes_live - before - bytes;
        ASSERT_LE(waste, bytes <= 128 ? 7 : bytes / 8) << bytes;
    }
    this->blocks.verify();
    while (!this->blocks.empty())
        this->give(this->memory, this->blocks[this->blocks.count() / 2]);
    EXPECT_EQ(this->memory.stats().bytes_live, 0U);
}

TYPED_TEST(any_multipool, aligns_blocks_of_every_size_as_requested_up_to_2_mib)
{
    for (std::size_t align = 1; align <= std::size_t{2} << 20; align *= 2)
        for (std::size_t const bytes : {0, 1, 8, 33, 100, 129, 1000, 4095, 4096, 4097, 10000})
            this->take(this->memory, {bytes, align});
    EXPECT_EQ(this->memory.stats().blocks_live, this->blocks.count());
    while (!this->blocks.empty())
        this->give(this->memory, this->blocks[0]);
    EXPECT_EQ(this->memory.stats().blocks_live, 0U);
}

TYPED_TEST(any_multipool, allocates_distinct_blocks_for_0_bytes)
{
    for (std::size_t align = 1; align <= 4096; align *= 4)
        for (int i = 0; i < 20; ++i)
            EXPECT_TRUE(this->memory.owns(this->take(this->memory, {0, align})));
    while (!this->blocks.empty())
        this->give(this->memory, this->blocks[0]);
}

TYPED_TEST(any_multipool, allocates_larger_blocks_from_the_source_and_returns_them_when_freed)
{
    std::size_t const largest = this->memory.largest();
    this->take(this->memory, {largest});
    std::size_t const chunks = this->heap.live().size();
    void* const large = this->take(this->memory, {largest + 1});
    EXPECT_EQ(this->heap.live().size(), chunks + 1);
    EXPECT_EQ(this->heap.asked().back().align, alignof(std::max_align_t));
    EXPECT_LT(this->heap.asked().back().bytes, largest + 1 + 64);
    EXPECT_TRUE(this->memory.owns(large));
    EXPECT_EQ(this->memory.classify(large), validity::miss);
    this->give(this->memory, large);
    EXPECT_EQ(this->heap.live().size(), chunks);
}

TYPED_TEST(any_multipool, has_size_classes_up_to_that_of_the_option_largest)
{
    EXPECT_EQ(mallard::multipool<>::largest(), 32768U);
    EXPECT_EQ((TypeParam::template multipool<null, 0>::largest()), 8U);
    EXPECT_EQ((TypeParam::template multipool<null, 90>::largest()), 96U);
    EXPECT_EQ((TypeParam::template multipool<null, 1000>::largest()), 1024U);
    EXPECT_EQ((TypeParam::template multipool<null, 1 << 20>::largest()), std::size_t{1} << 20);
}

TYPED_TEST(any_multipool, aligns_blocks_near_a_largest_class_that_is_not_a_power_of_two)
{
    typename TypeParam::template multipool<ref<failing_source>, 96> small{ref(this->heap)};
    for (std::size_t align = 1; align <= 256; align *= 2)
        for (std::size_t bytes = 0; bytes <= 130; ++bytes)
            this->take(small, {bytes, align});
    while (!this->blocks.empty())
        this->give(small, this->blocks[0]);
    EXPECT_EQ(small.stats().blocks_live, 0U);
}

TYPED_TEST(any_multipool, fails_for_layouts_near_the_size_of_the_address_space_and_keeps_no_memory)
{
    for (std::size_t const bytes : {most, most - 1, most - 8, most - 63, most - 4096, most / 2 + 1,
                                    most / 2, most / 2 - 4096})
        for (std::size_t align = 1; align <= std::size_t{2} << 20; align *= 2) {
            EXPECT_EQ(this->memory.try_allocate({bytes, align}), nullptr);
            EXPECT_THROW(static_cast<void>(this->memory.allocate({bytes, align})), std::bad_alloc);
        }
    EXPECT_EQ(this->memory.try_allocate({8, most / 2 + 1}), nullptr);
    EXPECT_EQ(this->heap.bytes(), 0U);
    EXPECT_EQ(this->memory.stats().blocks_live, 0U);
}

TYPED_TEST(any_multipool, classifies_addresses_in_and_outside_its_blocks)
{
    std::vector<void*> all;
    for (std::size_t bytes = 1; bytes <= 4096; bytes += 97)
        all.push_back(this->take(this->memory, {bytes, 1}));
    for (void* const block : all) {
        auto* const first = static_cast<std::byte*>(block);
        EXPECT_TRUE(this->memory.owns(first));
        EXPECT_EQ(this->memory.classify(first), validity::valid);
        EXPECT_EQ(this->memory.classify(first + 1), validity::invalid);
    }
    EXPECT_FALSE(this->memory.owns(&all));
    EXPECT_EQ(this->memory.classify(&all), validity::miss);
    for (void* const block : all) {
        this->give(this->memory, block);
        EXPECT_EQ(this->memory.classify(block), validity::invalid);
    }
    this->memory.release();
    EXPECT_EQ(this->memory.classify(all[0]), validity::miss);
}

TYPED_TEST(any_multipool, leaks_nothing_whichever_call_to_the_source_fails)
{
    for_each_refusal([](failing_source& source) {
        typename TypeParam::template multipool<> other{ref(source)};
        model mine;
        for (std::size_t i = 0; i < 300; ++i) {
            layout const l(i * 37 % 5000, std::size_t{1} << i % 9);
            void* block = other.try_allocate(l);
            if (block == nullptr)
                block = other.allocate(l); // only one call of the source fails
            mine.add(block, l);
        }
        EXPECT_EQ(other.stats().blocks_live, 300U);
        EXPECT_EQ(other.stats().bytes_taken, source.bytes());
        while (!mine.empty()) {
            void* const block = mine[mine.count() / 2];
            other.deallocate(block, mine.remove(block));
        }
        EXPECT_EQ(other.stats().blocks_live, 0U);
    });
}

TYPED_TEST(any_multipool, keeps_the_memory_of_its_pools_at_reset_and_returns_large_blocks)
{
    for (int round = 0; round < 3; ++round) {
        this->fill(this->memory, 3000);
        this->blocks.clear();
        std::size_t const calls = this->heap.calls(), bytes = this->heap.bytes();
        this->take(this->memory, {10000});
        this->blocks.clear();
        this->memory.reset();
        EXPECT_EQ(this->heap.bytes(), bytes);
        EXPECT_EQ(this->memory.stats().blocks_live, 0U);
        this->fill(this->memory, 3000);
        this->blocks.clear();
        EXPECT_EQ(this->heap.calls(), calls + 1);
        this->memory.reset();
    }
}

TYPED_TEST(any_multipool, returns_all_memory_at_release_and_can_be_used_again)
{
    for (int round = 0; round < 3; ++round) {
        this->fill(this->memory, 1000);
        this->take(this->memory, {10000});
        this->blocks.clear();
        this->memory.release();
        EXPECT_EQ(this->heap.bytes(), 0U);
        EXPECT_EQ(this->memory.stats().bytes_taken, 0U);
    }
}

TYPED_TEST(any_multipool, trims_chunks_without_a_block_in_use)
{
    void* const kept = this->take(this->memory, {50});
    this->fill(this->memory, 3000);
    while (this->blocks.count() > 1)
        this->give(this->memory, this->blocks[this->blocks[0] == kept]);
    this->memory.trim();
    EXPECT_LE(this->heap.bytes(), 65536U + 8192) << "the chunk, and the pools themselves";
    EXPECT_EQ(this->memory.classify(kept), validity::valid);
    this->fill(this->memory, 3000);
}

TYPED_TEST(any_multipool, moves_with_its_blocks_and_leaves_an_empty_usable_multipool)
{
    this->fill(this->memory, 1000);
    this->take(this->memory, {10000});
    auto moved = std::move(this->memory);
    EXPECT_EQ(this->memory.stats().bytes_taken, 0U);
    EXPECT_EQ(moved.stats().blocks_live, 1001U);
    this->fill(moved, 1000);
    void* const here = this->memory.allocate({100});
    this->memory = std::move(moved);
    EXPECT_FALSE(this->memory.owns(here));
    EXPECT_EQ(this->memory.stats().bytes_taken, this->heap.bytes());
    auto& same = this->memory;
    this->memory = std::move(same);
    while (!this->blocks.empty())
        this->give(this->memory, this->blocks[0]);
    EXPECT_EQ(this->memory.stats().blocks_live, 0U);
}

TYPED_TEST(any_multipool, that_owns_an_arena_releases_by_one_call_to_the_arena)
{
    using arena = mallard::arena<ref<failing_source>>;
    typename TypeParam::template multipool<arena> other{arena(ref(this->heap))};
    for (int round = 0; round < 3; ++round) {
        this->fill(other, 2000);
        while (this->blocks.count() > 1000)
            this->give(other, this->blocks[0]);
        this->fill(other, 2000);
        this->take(other, {10000});
        this->take(other, {1, 1 << 20});
        this->blocks.verify();
        this->blocks.clear();
        other.release();
        EXPECT_EQ(this->heap.bytes(), 0U);
        EXPECT_EQ(other.upstream().stats().bytes_taken, 0U);
        EXPECT_EQ(other.stats().bytes_taken, 0U);
    }
    this->fill(other, 100);
    this->blocks.clear();
    auto moved = std::move(other);
    this->fill(moved, 100);
    this->fill(other, 100);
}

TYPED_TEST(any_multipool, on_a_borrowed_arena_returns_its_chunks_one_by_one)
{
    arena<ref<failing_source>> below{ref(this->heap)};
    auto* const kept = static_cast<char*>(below.allocate({100, 1}));
    std::memset(kept, 7, 100);
    {
        using above = ref<arena<ref<failing_source>>>;
        typename TypeParam::template multipool<above> other{above(below)};
        this->fill(other, 1000);
        this->blocks.clear();
        other.release();
        this->fill(other, 1000);
        this->blocks.clear();
    }
    EXPECT_TRUE(std::all_of(kept, kept + 100, [](char c) { return c == 7; }));
    // No byte of this range may still be poisoned.
    std::memset(below.allocate({100000, 1}), 1, 100000);
}

TEST(multipool, propagates_the_exception_of_its_source)
{
    failing_resource upstream;
    multipool<pmr_source> memory{pmr_source(&upstream)};
    upstream.source.fail_from(1);
    EXPECT_THROW(static_cast<void>(memory.allocate({100})), refusal);
    EXPECT_THROW(static_cast<void>(memory.allocate({10000})), refusal);
    EXPECT_THROW(static_cast<void>(memory.allocate({most})), refusal);
    EXPECT_EQ(memory.try_allocate({100}), nullptr);
    EXPECT_EQ(memory.try_allocate({10000}), nullptr);
    EXPECT_EQ(memory.try_allocate({most}), nullptr);
    upstream.source.fail_never();
    EXPECT_NE(memory.allocate({100}), nullptr);
}

TEST(multipool, propagates_an_exception_through_an_arena_in_between)
{
    failing_resource upstream;
    upstream.source.fail_from(1);
    using arena = mallard::arena<pmr_source>;
    arena shared{pmr_source(&upstream)};
    multipool<ref<arena>> over_a_shared_one{ref<arena>(shared)};
    multipool<arena> over_its_own{arena(pmr_source(&upstream))};
    EXPECT_THROW(static_cast<void>(over_a_shared_one.allocate({100})), refusal);
    EXPECT_THROW(static_cast<void>(over_its_own.allocate({100})), refusal);
}

TEST(multipool, works_in_a_borrowed_buffer)
{
    alignas(64) static std::byte bytes[200000];
    multipool<borrowed> memory{borrowed(bytes)};
    model blocks;
    for (int round = 0; round < 5; ++round) {
        for (std::size_t i = 0; i < 500; ++i)
            if (void* const block = memory.try_allocate({i % 300}))
                blocks.add(block, {i % 300});
        EXPECT_GT(blocks.count(), 400U);
        while (!blocks.empty()) {
            void* const block = blocks[0];
            memory.deallocate(block, blocks.remove(block));
        }
    }
}

} // namespace
