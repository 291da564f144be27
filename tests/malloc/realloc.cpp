// Tests realloc.
#include "../support/choices.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace {

using namespace mallard::testing;

/// Fills a block so that bytes at a distance of 64 KiB differ.
void write(void* block, std::size_t bytes)
{
    for (std::size_t i = 0; i < bytes; ++i)
        static_cast<unsigned char*>(block)[i] = static_cast<unsigned char>(i ^ i >> 8 ^ i >> 16);
}
bool is_written(const void* block, std::size_t bytes)
{
    for (std::size_t i = 0; i < bytes; ++i)
        if (static_cast<const unsigned char*>(block)[i] !=
            static_cast<unsigned char>(i ^ i >> 8 ^ i >> 16))
            return false;
    return true;
}

TEST(realloc, realloc_of_null_allocates_and_realloc_to_0_bytes_frees)
{
    void* const block = std::realloc(hidden<void*>(nullptr), 100);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(std::realloc(hidden(block), hidden(0)), nullptr);
    for (int i = 0; i < 100'000; ++i) // 100 GB in total if blocks were not freed
        ASSERT_EQ(std::realloc(hidden(std::malloc(1 << 20)), hidden(0)), nullptr);
    EXPECT_EQ(::reallocarray(hidden(std::malloc(100)), hidden(0), 8), nullptr);
}

TEST(realloc, keeps_the_contents_between_any_two_sizes)
{
    std::vector<std::size_t> sizes;
    for (std::size_t n = 1; n <= std::size_t{8} << 20; n = n * 5 / 2 + 3)
        sizes.push_back(n);
    for (std::size_t const from : sizes)
        for (std::size_t const to : sizes) {
            void* block = std::malloc(from);
            write(block, from);
            block = std::realloc(block, to);
            ASSERT_NE(block, nullptr);
            ASSERT_TRUE(is_written(block, std::min(from, to))) << from << " to " << to;
            ASSERT_GE(::malloc_usable_size(block), to);
            write(block, to);
            std::free(block);
        }
}

TEST(realloc, grows_a_block_whose_neighbours_are_in_use)
{
    std::vector<void*> neighbours;
    void* block = std::malloc(1);
    for (std::size_t bytes = 1; bytes < std::size_t{200} << 20;) {
        write(block, std::min<std::size_t>(bytes, 1 << 18));
        std::size_t const next = bytes + bytes / 2 + 1;
        block = std::realloc(block, next);
        ASSERT_TRUE(is_written(block, std::min<std::size_t>(bytes, 1 << 18))) << bytes;
        static_cast<char*>(block)[next - 1] = 1;
        neighbours.push_back(std::malloc(bytes % (1 << 20) + 1));
        bytes = next;
    }
    for (std::size_t bytes = std::size_t{200} << 20; bytes > 0; bytes /= 3) {
        block = std::realloc(block, bytes);
        ASSERT_TRUE(is_written(block, std::min<std::size_t>(bytes, 1 << 18))) << bytes;
    }
    std::free(block);
    for (void* const neighbour : neighbours)
        std::free(neighbour);
}

TEST(realloc, a_failed_realloc_leaves_the_block_unchanged)
{
    for (std::size_t const bytes : {1, 100, 5000, 300'000, 40 << 20}) {
        void* const block = std::malloc(bytes);
        fill(block, bytes, 5);
        for (std::size_t const too_many : {std::size_t{PTRDIFF_MAX}, SIZE_MAX, SIZE_MAX - 4096}) {
            errno = 0;
            EXPECT_EQ(std::realloc(hidden(block), hidden(too_many)), nullptr);
            EXPECT_EQ(errno, ENOMEM);
            errno = 0;
            EXPECT_EQ(::reallocarray(hidden(block), hidden(too_many), 3), nullptr);
            EXPECT_EQ(errno, ENOMEM);
        }
        EXPECT_TRUE(holds(block, bytes, 5)) << bytes;
        std::free(block);
    }
}

TEST(realloc, blocks_never_overlap_after_random_reallocs)
{
    seeded random(5);
    struct {
        void* block = nullptr;
        std::size_t bytes = 0;
    } slots[200];
    for (unsigned step = 0; step < 60'000; ++step) {
        auto const number = static_cast<unsigned>(random(200));
        auto& [block, bytes] = slots[number];
        std::size_t const next = 1 + random(std::size_t{1} << random(19));
        block = std::realloc(block, next);
        // Above 4 KiB, `fill` writes only some bytes, and which ones depends on the size. So only
        // the first 4 KiB can be compared after a resize.
        ASSERT_TRUE(holds(block, std::min<std::size_t>({bytes, next, 4096}), number)) << step;
        bytes = next;
        fill(block, bytes, number);
    }
    for (auto& slot : slots)
        std::free(slot.block);
}

/// Allocates blocks of `bytes` with contents in their first and last page, and resizes each to
/// `next`. Returns by how much the resident memory grows.
std::size_t growth_of_sparse_blocks(std::size_t count, std::size_t bytes, std::size_t next)
{
    constexpr std::size_t page = 4096;
    std::size_t const copied = std::min(bytes, next) - page;
    std::vector<char*> blocks(count);
    for (char*& block : blocks) {
        block = static_cast<char*>(std::malloc(bytes));
        fill(block, page, 1);
        fill(block + copied, page, 2);
    }
    std::size_t const before = resident_bytes();
    for (char*& block : blocks) {
        block = static_cast<char*>(std::realloc(block, next));
        EXPECT_TRUE(holds(block, page, 1));
        EXPECT_TRUE(holds(block + copied, page, 2));
        EXPECT_EQ(block[page + 1] | block[copied - 1], 0);
    }
    std::size_t const after = resident_bytes();
    for (char* const block : blocks)
        std::free(block);
    return after > before ? after - before : 0;
}

TEST(realloc, touches_no_page_that_the_program_has_not_touched)
{
    constexpr std::size_t mebibyte = 1 << 20;
    ::malloc_trim(0); // otherwise memory that was used before is used again
    EXPECT_LE(growth_of_sparse_blocks(1, 20 * mebibyte, 30 * mebibyte), mebibyte);
    EXPECT_LE(growth_of_sparse_blocks(4, 31 * mebibyte, 50 * mebibyte), mebibyte);
    EXPECT_LE(growth_of_sparse_blocks(4, 50 * mebibyte, 40 * mebibyte), mebibyte);
    EXPECT_LE(growth_of_sparse_blocks(1200, 33 * mebibyte, 66 * mebibyte), 40 * mebibyte);
    EXPECT_LE(growth_of_sparse_blocks(1200, 66 * mebibyte, 34 * mebibyte), 40 * mebibyte);
}

} // namespace
