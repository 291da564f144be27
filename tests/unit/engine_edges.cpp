// Edge cases of the malloc engine, which is linked without the names of malloc.
#include "../support/asan.hpp"
#include "../support/child.hpp"
#include "../support/engine_program.hpp"
#include "../support/threads.hpp"
#include "../support/tsan.hpp"
#include "pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace mallard::testing;
namespace engine = mallard::engine;

std::size_t reservation_count()
{
    std::size_t count = 0;
    for (engine::reservation const& w : engine::reservations)
        count += w.slices != 0;
    return count;
}

// A purge may not begin or end at a page boundary: on AArch64, a page may be larger than a slice.
TEST(engine_edges, a_purge_zeroes_the_parts_of_pages_at_the_ends_of_its_range)
{
    auto const page = static_cast<std::size_t>(::getpagesize());
    std::byte* const memory = mallard::os::map(4 * page);
    ASSERT_NE(memory, nullptr);
    std::fill_n(memory, 4 * page, std::byte{1});
    EXPECT_TRUE(mallard::os::purge(memory + 100, 2 * page));
    EXPECT_TRUE(mallard::os::purge(memory + 3 * page + 5, 10)); // within one page
    for (std::size_t i = 0; i < 4 * page; ++i) {
        bool const is_purged = i - 100 < 2 * page || i - (3 * page + 5) < 10;
        ASSERT_EQ(memory[i], std::byte(is_purged ? 0 : 1)) << i;
    }
    EXPECT_TRUE(mallard::os::unmap(memory, 4 * page));
}

TEST(engine_edges, a_thread_without_a_cache_frees_a_large_block)
{
    std::size_t const before = slices_used();
    for (int i = 0; i < 10; ++i) {
        void* const block = engine::allocate_large(2 * mib, engine::slice_bytes);
        auto* const words = static_cast<void**>(block);
        // A free block has a check word, made from its address and the secret key of the process.
        // The new thread still uses `empty_thread_cache`, whose key is 0. With a key of 0, this
        // block looks like a free block.
        words[1] = words;
        in_a_thread([&] { engine::deallocate(block); });
    }
    EXPECT_EQ(slices_used(), before);
}

TEST(engine_edges, hundreds_of_blocks_can_have_a_mapping_each)
{
    std::vector<void*> blocks;
    for (int i = 0; i < 300; ++i)
        blocks.push_back(engine::allocate(33 * mib));
    EXPECT_EQ(engine::huge_now().blocks, 300U);
    for (std::size_t i = 0; i < blocks.size(); i += 2)
        engine::deallocate(blocks[i]);
    for (std::size_t i = 1; i < blocks.size(); i += 2)
        EXPECT_GE(engine::usable_bytes(blocks[i], "a test"), 33 * mib);
    for (std::size_t i = 1; i < blocks.size(); i += 2)
        engine::deallocate(blocks[i]);
    EXPECT_EQ(engine::huge_now().bytes, 0U);
}

TEST(engine_edges, a_request_of_0_bytes_with_a_huge_alignment_returns_a_block)
{
    for (std::size_t align = 16; align <= 256 * mib; align *= 2) {
        void* const block = engine::allocate_aligned(0, align);
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % align, 0U);
        EXPECT_GT(engine::usable_bytes(block, "a test"), 0U);
        engine::deallocate(block);
    }
}

// If a thread's lists kept one block of every slab, no slab could be returned.
TEST(engine_edges, slabs_are_returned_after_many_frees_in_any_order)
{
    std::vector<void*> blocks(300'000);
    std::mt19937 random(1);
    in_a_thread([&] {
        for (int round = 0; round < 8; ++round) {
            for (void*& block : blocks)
                block = engine::allocate(64);
            std::shuffle(blocks.begin(), blocks.end(), random);
            for (void* const block : blocks)
                engine::deallocate(block);
        }
        EXPECT_LT(slices_used(), 400U); // the blocks used 1,172 slices before
    });
}

TEST(engine_edges, requests_of_impossible_sizes_and_alignments_fail)
{
    for (std::size_t bytes : {~std::size_t{0}, ~std::size_t{0} - 4096, ~std::size_t{0} / 2 + 1,
                              ~std::size_t{0} / 2, ~std::size_t{0} / 2 - mib}) {
        EXPECT_EQ(engine::allocate(bytes), nullptr);
        EXPECT_EQ(engine::allocate_zeroed(bytes), nullptr);
        for (std::size_t align = 1; align != 0; align *= 2)
            EXPECT_EQ(engine::allocate_aligned(bytes, align), nullptr);
        for (std::size_t before : {100 * mib, 2 * mib, mib / 2, std::size_t{100}}) {
            void* const block = engine::allocate(before);
            EXPECT_EQ(engine::reallocate(block, bytes), nullptr);
            EXPECT_GE(engine::usable_bytes(block, "a test"), before);
            engine::deallocate(block);
        }
    }
    EXPECT_EQ(engine::allocate_aligned(1, ~(~std::size_t{0} >> 1)), nullptr);
}

/// Returns whether a sanitizer runs. Its shadow memory needs more address space than a limit would
/// leave, so tests cannot set memory limits.
bool cannot_test_limits()
{
    return has_asan() || has_tsan();
}

TEST(engine_edges, a_request_that_fails_makes_no_reservation)
{
    if (cannot_test_limits())
        GTEST_SKIP() << "under a sanitizer";
    EXPECT_EQ(in_a_child([] {
                  engine::deallocate(engine::allocate(100));
                  rlimit const limit{20 * mib, 20 * mib};
                  require(::setrlimit(RLIMIT_DATA, &limit) == 0, "a limit is set");
                  while (engine::allocate(30 * mib) != nullptr)
                      continue;
                  require(reservation_count() == 1, "there is still one reservation");
              }),
              "fine");
}

/// Maps a page at the address where the first reservation would grow.
void stand_in_the_way()
{
    engine::reservation const& w = engine::reservations[0];
    void* const place = w.address_of(w.commit_limit());
    require(::mmap(place, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                   0) == place,
            "the place is free");
}

TEST(engine_edges, a_second_reservation_is_made_if_a_mapping_prevents_the_growth_of_the_first)
{
    EXPECT_EQ(in_a_child([] {
                  engine::deallocate(engine::allocate(100));
                  if (engine::reservations[0].is_reserved) // true under some sanitizers
                      return;
                  stand_in_the_way();
                  std::vector<void*> blocks;
                  for (std::size_t i = 0; i < 40'000; ++i)
                      blocks.push_back(std::memset(engine::allocate(1000), 1, 1000));
                  for (std::size_t i = 0; i < 5; ++i)
                      blocks.push_back(engine::allocate(30 * mib));
                  require(reservation_count() == 2, "there are two reservations");
                  std::size_t second = 0;
                  for (void* const block : blocks) {
                      second += engine::reservation_of(block) == engine::reservations + 1;
                      engine::deallocate(block);
                  }
                  require(second > 0 && second < blocks.size(), "both reservations have blocks");
              }),
              "fine");
}

TEST(engine_edges, half_of_a_limited_address_space_can_be_allocated)
{
    if (cannot_test_limits())
        GTEST_SKIP() << "under a sanitizer";
    EXPECT_EQ(in_a_child([] {
                  // Other tests of this process have left mappings, which count too.
                  std::size_t const most = mapped_pages() * 4096 + 120 * mib;
                  rlimit const limit{most, most};
                  require(::setrlimit(RLIMIT_AS, &limit) == 0, "a limit is set");
                  engine::deallocate(engine::allocate(100));
                  for (int i = 0; i < 3; ++i)
                      require(engine::allocate(20 * mib) != nullptr,
                              "half of the address space is usable");
                  require(engine::allocate(100) != nullptr, "and then a small block");
              }),
              "fine");
}

} // namespace
