// Tests heaps that one thread uses.
#include "../support/resident.hpp"
#include "../support/tsan.hpp"

#include <mallard/heap.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pmr.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using mallard::heap;
using mallard::shared_heap;
using mallard::testing::resident_bytes;

static_assert(mallard::resettable<heap> && mallard::owning<heap>);
static_assert(mallard::shareable<shared_heap> && !mallard::shareable<heap>);

constexpr std::size_t sizes[] = {0,    1,     16,    17,     100,     1024,   1025,
                                 4000, 16383, 16384, 100000, 1 << 20, 5 << 20};

template <class H>
struct heaps : testing::Test {};
using kinds = testing::Types<heap, shared_heap>;
TYPED_TEST_SUITE(heaps, kinds);

TYPED_TEST(heaps, allocate_no_memory_before_the_first_block)
{
    TypeParam h;
    EXPECT_EQ(h.stats().bytes_taken, 0u);
    EXPECT_EQ(h.stats().chunks, 0u);
}

TYPED_TEST(heaps, allocate_every_size_and_own_the_blocks)
{
    TypeParam h;
    TypeParam other;
    for (std::size_t const bytes : sizes) {
        void* const block = h.allocate(bytes);
        std::memset(block, 0x5a, bytes);
        EXPECT_GE(mallard_usable_size(block), bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0u);
        EXPECT_TRUE(h.owns(block));
        EXPECT_TRUE(h.owns(static_cast<std::byte*>(block) + (bytes == 0 ? 0 : bytes - 1)));
        EXPECT_FALSE(other.owns(block));
        EXPECT_EQ(h.stats().blocks_live, 1u);
        EXPECT_EQ(h.stats().bytes_live, mallard_usable_size(block));
        h.deallocate(block);
        EXPECT_EQ(h.stats().blocks_live, 0u);
    }
}

TYPED_TEST(heaps, allocate_adjacent_blocks_again_after_frees_in_random_order)
{
    TypeParam h;
    std::vector<std::byte*> blocks(100'000);
    std::mt19937 random(1);
    std::ptrdiff_t neighbours = 0;
    for (int round = 0; round < 3; ++round) {
        for (std::byte*& block : blocks)
            block = static_cast<std::byte*>(h.allocate(64));
        // Counts neighbours in more blocks than a few partly free slabs could hold.
        auto const end = blocks.begin() + 10'000;
        neighbours =
            std::inner_product(blocks.begin() + 1, end, blocks.begin(), std::ptrdiff_t{0},
                               std::plus<>(), [](auto* b, auto* a) { return b - a == 64 ? 1 : 0; });
        std::ranges::shuffle(blocks, random);
        for (std::byte* const block : blocks)
            h.deallocate(block);
    }
    EXPECT_GE(neighbours, 9'500);
}

TEST(heap, the_heap_of_the_process_allocates_adjacent_blocks_again_after_frees_in_random_order)
{
    std::vector<std::byte*> blocks(300'000); // about 1,200 slabs
    std::mt19937 random(1);
    std::size_t jumps = 0;
    for (int round = 0; round < 5; ++round) {
        for (std::byte*& block : blocks)
            block = static_cast<std::byte*>(mallard_malloc(64));
        jumps = 0;
        for (std::size_t i = 1; i < blocks.size(); ++i)
            jumps += blocks[i] != blocks[i - 1] + 64;
        std::ranges::shuffle(blocks, random);
        for (std::byte* const block : blocks)
            mallard_free(block);
    }
    EXPECT_LE(jumps, 400u);
}

TYPED_TEST(heaps, honour_every_alignment)
{
    TypeParam h;
    for (std::size_t align = 1; align <= std::size_t{1} << 24; align *= 2)
        for (std::size_t const bytes : {1, 24, 3000, 70000, 3 << 20}) {
            void* const block = h.allocate({static_cast<std::size_t>(bytes), align});
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % align, 0u);
            std::memset(block, 1, static_cast<std::size_t>(bytes));
            h.deallocate(block, {static_cast<std::size_t>(bytes), align});
        }
    EXPECT_EQ(h.stats().blocks_live, 0u);
}

TYPED_TEST(heaps, release_returns_the_memory_of_live_blocks)
{
    TypeParam h;
    for (int i = 0; i < 1000; ++i)
        for (std::size_t const bytes : {16, 300, 20000})
            static_cast<void>(h.allocate(bytes));
    void* const large = h.allocate(std::size_t{5} << 20);
    EXPECT_EQ(h.stats().blocks_live, 3001u);
    EXPECT_EQ(h.stats().large_blocks, 1u);
    h.release();
    EXPECT_EQ(h.stats().bytes_taken, 0u);
    EXPECT_EQ(h.stats().blocks_live, 0u);
    EXPECT_FALSE(h.owns(large));
    EXPECT_GT(h.stats().bytes_taken_max, std::size_t{25} << 20);
}

TYPED_TEST(heaps, reset_keeps_the_chunks_and_reuses_them)
{
    TypeParam h;
    auto const fill = [&] {
        for (int i = 0; i < 3000; ++i)
            std::memset(h.allocate(100), i, 100);
    };
    fill();
    std::size_t const taken = h.stats().bytes_taken;
    for (int round = 0; round < 100; ++round) {
        h.reset();
        EXPECT_EQ(h.stats().blocks_live, 0u);
        fill();
    }
    EXPECT_EQ(h.stats().bytes_taken, taken);
}

TYPED_TEST(heaps, reuse_freed_memory_for_another_size)
{
    TypeParam h;
    std::vector<void*> blocks;
    std::size_t most = 0;
    for (std::size_t bytes = 16; bytes < 8192; bytes = bytes * 5 / 4) {
        for (std::size_t i = 0; i < (std::size_t{4} << 20) / bytes; ++i)
            blocks.push_back(h.allocate(bytes));
        for (void* const block : blocks)
            h.deallocate(block);
        blocks.clear();
        most = std::max(most, h.stats().bytes_taken);
    }
    EXPECT_LT(most, std::size_t{12} << 20);
}

TYPED_TEST(heaps, do_not_report_a_double_free_of_a_block_allocated_after_a_reset)
{
    TypeParam h;
    for (std::size_t const bytes : {16, 64, 1000})
        for (int life = 0; life < 3; ++life) {
            std::vector<void*> blocks(2000);
            for (void*& block : blocks)
                block = h.allocate(bytes);
            for (void* const block : blocks)
                EXPECT_GE(mallard_usable_size(block),
                          bytes); // stops the process if the block looks free
            for (void* const block : blocks)
                h.deallocate(block);
            h.reset();
        }
}

TYPED_TEST(heaps, trim_returns_chunks_without_blocks)
{
    TypeParam h;
    std::vector<void*> blocks;
    for (int i = 0; i < 10000; ++i)
        blocks.push_back(h.allocate(1000));
    void* const stays = h.allocate(64);
    for (void* const block : blocks)
        h.deallocate(block);
    h.trim(std::size_t{8} << 20);
    EXPECT_GT(h.stats().bytes_taken, std::size_t{4} << 20);
    h.trim();
    EXPECT_LE(h.stats().bytes_taken, std::size_t{4} << 20);
    EXPECT_EQ(h.stats().blocks_live, 1u);
    h.deallocate(stays);
    h.trim();
    EXPECT_EQ(h.stats().bytes_taken, 0u);
    h.deallocate(h.allocate(64));
}

TYPED_TEST(heaps, keep_the_contents_and_the_owning_heap_of_a_reallocated_block)
{
    TypeParam h;
    std::size_t const steps[] = {1,       40,       100000,  50,     3 << 20, 5 << 20,
                                 2 << 20, 33 << 20, 1 << 20, 900000, 16,      17};
    auto* block = static_cast<unsigned char*>(mallard_heap_realloc(h.handle(), nullptr, 8));
    std::size_t before = 8;
    std::memset(block, 7, before);
    for (std::size_t const bytes : steps) {
        block = static_cast<unsigned char*>(mallard_realloc(block, bytes));
        ASSERT_TRUE(h.owns(block));
        for (std::size_t i = 0; i < std::min(before, bytes); i += 4096)
            ASSERT_EQ(block[i], 7);
        std::memset(block, 7, bytes);
        before = bytes;
        EXPECT_EQ(h.stats().blocks_live, 1u);
    }
    mallard_free(block);
    EXPECT_EQ(h.stats().blocks_live, 0u);
}

TYPED_TEST(heaps, realloc_touches_no_page_that_the_program_has_not_touched)
{
    if (mallard::testing::has_tsan())
        GTEST_SKIP() << "ThreadSanitizer records each read in memory";
    constexpr std::size_t page = 4096, mebibyte = 1 << 20;
    mallard_trim(0); // otherwise blocks would get memory that earlier tests have touched
    constexpr struct {
        std::size_t count, bytes, next;
    } cases[] = {{1, 20, 30}, {4, 50, 90}, {4, 90, 40}};
    for (auto const& [count, bytes, next] : cases) {
        TypeParam h;
        std::vector<char*> blocks;
        for (std::size_t i = 0; i < count; ++i) {
            blocks.push_back(static_cast<char*>(h.allocate(bytes * mebibyte)));
            std::memset(blocks.back(), 7, page);
        }
        std::size_t const before = resident_bytes();
        for (char*& block : blocks)
            block = static_cast<char*>(mallard_heap_realloc(h.handle(), block, next * mebibyte));
        EXPECT_LE(resident_bytes(), before + mebibyte) << bytes << " MiB to " << next;
        for (char* const block : blocks)
            EXPECT_EQ(block[page - 1] + block[page], 7);
    }
}

TYPED_TEST(heaps, calloc_returns_zeroed_blocks)
{
    TypeParam h;
    for (int round = 0; round < 3; ++round) {
        for (std::size_t const bytes : sizes) {
            auto* const block =
                static_cast<unsigned char*>(mallard_heap_calloc(h.handle(), bytes, 1));
            for (std::size_t i = 0; i < bytes; ++i)
                ASSERT_EQ(block[i], 0);
            std::memset(block, 0xff, bytes);
            if (round != 1)
                mallard_free(block);
        }
        h.reset();
    }
}

TYPED_TEST(heaps, fail_requests_larger_than_the_address_space)
{
    TypeParam h;
    for (std::size_t const bytes : {SIZE_MAX, SIZE_MAX / 2, std::size_t{1} << 46}) {
        EXPECT_EQ(h.try_allocate(bytes), nullptr);
        EXPECT_THROW(static_cast<void>(h.allocate(bytes)), std::bad_alloc);
    }
    EXPECT_EQ(mallard_heap_calloc(h.handle(), SIZE_MAX / 2, 3), nullptr);
    EXPECT_EQ(h.try_allocate({16, std::size_t{1} << 62}), nullptr);
    EXPECT_EQ(mallard_heap_allocate_aligned(h.handle(), 16, 48), nullptr);
    EXPECT_EQ(h.stats().bytes_taken, 0u);
}

TYPED_TEST(heaps, a_moved_from_heap_fails_all_requests)
{
    TypeParam h;
    void* const block = h.allocate(10);
    TypeParam to = std::move(h);
    EXPECT_TRUE(to.owns(block));
    EXPECT_EQ(h.try_allocate(10), nullptr);
    EXPECT_FALSE(h.owns(block));
    EXPECT_EQ(h.stats().blocks_live, 0u);
    h.reset();
    h.release();
    h = std::move(to);
    EXPECT_EQ(h.stats().blocks_live, 1u);
}

TYPED_TEST(heaps, work_as_a_pmr_resource)
{
    mallard::pmr_resource<TypeParam> memory;
    {
        std::pmr::map<int, std::pmr::string> names(&memory);
        for (int i = 0; i < 1000; ++i)
            names[i] = "a name too long for a string to hold in itself";
        EXPECT_TRUE(memory.owns(names[5].data()));
        EXPECT_EQ(memory.stats().blocks_live, 2000u);
    }
    EXPECT_EQ(memory.stats().blocks_live, 0u);
    memory.release();
}

TEST(heap, can_be_the_source_of_a_multipool)
{
    mallard::multipool<heap> pools;
    static_cast<void>(pools.allocate(100));
    EXPECT_EQ(pools.upstream().stats().blocks_live, 2u) << "eight pools, and a chunk";
    pools.release();
    EXPECT_EQ(pools.upstream().stats().bytes_taken, 0u);
}

// A regression test: under AddressSanitizer, bytes that a pool had marked as free stayed
// inaccessible in the next block of the heap.
TEST(heap, allocates_accessible_memory_after_a_pool_over_it_was_released)
{
    mallard::multipool<heap> pools;
    mallard::pool<heap> blocks(100);
    for (heap* const source : {&pools.upstream(), &blocks.upstream()}) {
        static_cast<void>(pools.allocate(100));
        static_cast<void>(blocks.allocate());
        pools.release();
        blocks.release();
        for (int i = 0; i < 1000; ++i)
            std::memset(source->allocate(1000), 1, 1000);
    }
}

std::size_t bytes_between(const mallard_heap* a, const mallard_heap* b)
{
    return reinterpret_cast<std::uintptr_t>(b) - reinterpret_cast<std::uintptr_t>(a);
}

std::vector<mallard_heap*> handles_of(std::vector<heap> const& heaps)
{
    std::vector<mallard_heap*> all;
    for (heap const& h : heaps)
        all.push_back(h.handle());
    std::sort(all.begin(), all.end());
    return all;
}

TEST(heap, data_of_a_destroyed_heap_is_reused_by_a_later_heap)
{
    std::vector<mallard_heap*> first;
    for (int round = 0; round < 5; ++round) {
        std::vector<heap> heaps(10'000);
        auto const handles = handles_of(heaps);
        EXPECT_LT(bytes_between(handles[0], handles[1]), 4608u);
        if (round == 0)
            first = handles;
        EXPECT_EQ(handles, first);
        for (heap& h : heaps)
            std::memset(h.allocate(100), 1, 100);
    }
}

TEST(heap, the_use_of_a_heap_that_is_confined_to_another_thread_stops_the_process)
{
    heap h;
    EXPECT_DEATH(
        std::jthread([&] { static_cast<void>(h.allocate(10)); }),
        "mallard: the confined heap 0x[0-9a-f]+ is used for an allocation by another thread");
}

TEST(heap, stops_the_process_at_a_double_free)
{
    heap h;
    for (std::size_t const bytes : {64, 200000, 3 << 20}) {
        void* const block = h.allocate(bytes);
        mallard_free(block);
        EXPECT_DEATH(mallard_free(block), "mallard: (double )?free of 0x[0-9a-f]+");
    }
}

TEST(heap, stops_the_process_at_a_free_of_an_address_inside_a_block)
{
    heap own;
    shared_heap shared;
    constexpr const char* inside = "mallard: free of 0x[0-9a-f]+, which is inside a block";
    for (std::size_t const bytes : {64, 1024, 20'000, 200'000, 3 << 20})
        for (std::size_t const offset : {1, 8, 32}) {
            auto* const block = static_cast<std::byte*>(own.allocate(bytes));
            auto* const of_all = static_cast<std::byte*>(shared.allocate(bytes));
            EXPECT_DEATH(own.deallocate(block + offset), inside) << bytes;
            EXPECT_DEATH(mallard_free(block + offset), inside) << bytes;
            EXPECT_DEATH(shared.deallocate(of_all + offset), inside) << bytes;
            EXPECT_DEATH(mallard_free(of_all + offset), inside) << bytes;
        }
}

TEST(heap, stops_the_process_at_a_free_of_a_block_that_was_released)
{
    heap h;
    void* const block = h.allocate(64);
    h.release();
    EXPECT_DEATH(mallard_free(block), "mallard: free of 0x[0-9a-f]+, which is not a block");
}

} // namespace
