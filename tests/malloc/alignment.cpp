// Tests the alignment of blocks.
#include "support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace {

using namespace mallard::testing;

void* by_posix_memalign(std::size_t align, std::size_t bytes)
{
    void* block = nullptr;
    return ::posix_memalign(&block, hidden(align), bytes) == 0 ? block : nullptr;
}

TEST(alignment, is_sixteen_for_every_size)
{
    for (member const& by : family)
        for (std::size_t bytes = 0; bytes <= 4200; bytes += by.align > 64 ? 35 : 1) {
            void* const block = by.allocate(bytes);
            ASSERT_TRUE(is_aligned(block, by.align)) << by.name << " of " << bytes;
            std::free(block);
        }
    std::vector<void*> kept;
    for (std::size_t bytes = 1; bytes < 2'000'000; bytes += bytes / 16 + 1) {
        kept.push_back(std::malloc(bytes));
        ASSERT_TRUE(is_aligned(kept.back(), 16)) << bytes;
        kept.back() = std::realloc(kept.back(), bytes * 2);
        ASSERT_TRUE(is_aligned(kept.back(), 16)) << bytes;
    }
    for (void* const block : kept)
        std::free(block);
}

/// Allocates several blocks of each size, because the first block of a slab is often aligned by
/// chance.
template <class Allocate>
void try_pairs(Allocate allocate)
{
    constexpr unsigned count = 4;
    for (std::size_t align = 16; align <= std::size_t{2} << 20; align *= 2)
        for (std::size_t scale = 1; scale <= std::size_t{2} << 20; scale *= 2)
            for (std::size_t const bytes : {scale, scale + 1, scale + scale / 2}) {
                void* blocks[count];
                for (unsigned i = 0; i < count; ++i) {
                    blocks[i] = allocate(align, bytes);
                    ASSERT_NE(blocks[i], nullptr) << align << ", " << bytes;
                    ASSERT_TRUE(is_aligned(blocks[i], align)) << align << ", " << bytes;
                    ASSERT_GE(::malloc_usable_size(blocks[i]), bytes) << align << ", " << bytes;
                    fill(blocks[i], bytes, i);
                }
                for (unsigned i = 0; i < count; ++i) {
                    ASSERT_TRUE(holds(blocks[i], bytes, i)) << align << ", " << bytes;
                    std::free(blocks[i]);
                }
            }
}

TEST(alignment, holds_for_any_size_in_memalign)
{
    try_pairs([](std::size_t align, std::size_t bytes) { return ::memalign(align, bytes); });
}

TEST(alignment, holds_for_any_size_in_aligned_alloc)
{
    try_pairs([](std::size_t align, std::size_t bytes) { return ::aligned_alloc(align, bytes); });
}

TEST(alignment, holds_for_any_size_in_posix_memalign)
{
    try_pairs(by_posix_memalign);
}

TEST(alignment, holds_in_memory_that_had_other_alignments)
{
    for (std::size_t align = 2 << 20; align >= 16; align /= 2) {
        std::vector<void*> blocks;
        for (std::size_t bytes = 1; bytes < 100'000; bytes = bytes * 3 + 5) {
            blocks.push_back(::memalign(align, bytes));
            ASSERT_TRUE(is_aligned(blocks.back(), align)) << align << ", " << bytes;
            blocks.push_back(std::malloc(bytes * 3));
        }
        for (void* const block : blocks)
            std::free(block);
    }
}

TEST(alignment, posix_memalign_returns_einval_for_an_invalid_alignment)
{
    int mine = 0;
    for (std::size_t const align : {0, 1, 2, 3, 4, 7, 9, 12, 24, 48, 4095, 4097}) {
        void* block = &mine;
        EXPECT_EQ(::posix_memalign(&block, hidden(align), 64), EINVAL) << align;
        EXPECT_EQ(block, &mine) << align;
    }
    void* block = &mine;
    EXPECT_EQ(::posix_memalign(&block, hidden(SIZE_MAX), 64), EINVAL);
    EXPECT_EQ(::posix_memalign(&block, 64, hidden(SIZE_MAX)), ENOMEM);
    EXPECT_EQ(block, &mine);
}

TEST(error_number, is_enomem_after_posix_memalign_without_memory)
{
    for (std::size_t const align : {8, 16, 64, 4096, 1 << 21})
        for (std::size_t const less : {0, 4096, 1 << 21}) {
            void* block = nullptr;
            errno = 0;
            EXPECT_EQ(::posix_memalign(&block, align, hidden(SIZE_MAX - less)), ENOMEM) << align;
            EXPECT_EQ(errno, ENOMEM) << align;
        }
}

TEST(alignment, a_request_with_an_alignment_of_half_the_address_space_fails)
{
    std::size_t const half = SIZE_MAX / 2 + 1;
    void* block = nullptr;
    EXPECT_EQ(::posix_memalign(&block, hidden(half), 64), ENOMEM);
    EXPECT_EQ(block, nullptr);
    EXPECT_EQ(::memalign(hidden(half), 64), nullptr);
    EXPECT_EQ(::aligned_alloc(hidden(half), 64), nullptr);
    std::free(hidden(::aligned_alloc(hidden(std::size_t{1}), 64)));
}

TEST(alignment, aligned_alloc_fails_for_an_invalid_alignment)
{
    if (!is_preloaded())
        GTEST_SKIP() << "before version 2.38, glibc rounds the alignment up";
    for (std::size_t const align : {0, 3, 7, 9, 12, 24, 48, 4095, 4097}) {
        errno = 0;
        EXPECT_EQ(::aligned_alloc(hidden(align), 64), nullptr) << align;
        EXPECT_EQ(errno, EINVAL) << align;
    }
}

TEST(alignment, a_request_with_an_alignment_above_two_mebibytes_is_aligned_or_fails)
{
    for (std::size_t align = std::size_t{4} << 20; align != 0; align *= 2)
        for (std::size_t const bytes : {1, 5000, 3 << 20}) {
            errno = 0;
            void* const block = ::memalign(hidden(align), bytes);
            if (align <= std::size_t{1} << 30) {
                ASSERT_NE(block, nullptr) << align << ", " << bytes;
            }
            if (block == nullptr) {
                EXPECT_TRUE(errno == ENOMEM || errno == EINVAL) << align;
                continue;
            }
            ASSERT_TRUE(is_aligned(block, align)) << align << ", " << bytes;
            fill(block, bytes, 3);
            std::free(block);
        }
}

TEST(alignment, realloc_keeps_the_contents_of_an_aligned_block_but_may_lose_the_alignment)
{
    for (std::size_t align = 16; align <= std::size_t{2} << 20; align *= 4)
        for (std::size_t const bytes : {10, 1000, 100'000})
            for (std::size_t const after : {5, 20, 2000, 300'000}) {
                void* const block = ::memalign(align, bytes);
                fill(block, bytes, 9);
                void* const moved = std::realloc(block, after);
                ASSERT_TRUE(holds(moved, std::min<std::size_t>({bytes, after, 4096}), 9))
                    << align << ", " << bytes << " to " << after;
                std::free(moved);
            }
}

} // namespace
