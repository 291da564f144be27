// Tests sizes from 0 to more than the address space.
#include "support.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace {

using namespace mallard::testing;

/// Returns sizes around powers of two. Only a few sizes are large, because each page costs a page
/// fault.
std::vector<std::size_t> ladder()
{
    std::vector<std::size_t> sizes{5 << 20, 33 << 20};
    for (std::size_t power = 1; power <= std::size_t{1} << 20; power *= power < 1 << 18 ? 2 : 4)
        for (std::size_t const n : {power - 1, power, power + 1, power + power / 2})
            sizes.push_back(n);
    return sizes;
}

TEST(sizes, every_function_fails_for_sizes_above_half_the_address_space)
{
    for (member const& by : family)
        for (std::size_t const limit : {std::size_t{PTRDIFF_MAX}, SIZE_MAX})
            for (std::size_t const less : {0, 1, 7, 8, 15, 16, 17, 4095, 4096, 1 << 16}) {
                errno = 0;
                EXPECT_EQ(by.allocate(limit - less), nullptr) << by.name << " of -" << less;
                EXPECT_EQ(errno, ENOMEM) << by.name << " of -" << less;
            }
    for (member const& by : family)
        for (std::size_t const more : {1, 2, 16, 4096}) {
            errno = 0;
            EXPECT_EQ(by.allocate(std::size_t{PTRDIFF_MAX} + more), nullptr) << by.name;
            EXPECT_EQ(errno, ENOMEM) << by.name;
        }
}

TEST(sizes, requests_whose_total_size_overflows_fail)
{
    std::size_t const half = std::size_t{1} << 32;
    struct {
        std::size_t count, bytes;
    } const products[] = {{half, half},          {half + 1, half},        {SIZE_MAX, 2},
                          {2, SIZE_MAX},         {SIZE_MAX / 16 + 1, 16}, {16, SIZE_MAX / 16 + 1},
                          {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX, SIZE_MAX},    {PTRDIFF_MAX / 8, 9}};
    void* const block = std::malloc(100);
    fill(block, 100, 1);
    for (auto [count, bytes] : products) {
        errno = 0;
        EXPECT_EQ(std::calloc(hidden(count), bytes), nullptr) << count << " x " << bytes;
        EXPECT_EQ(errno, ENOMEM);
        errno = 0;
        EXPECT_EQ(::reallocarray(hidden(block), count, bytes), nullptr) << count << " x " << bytes;
        EXPECT_EQ(errno, ENOMEM);
    }
    EXPECT_TRUE(holds(block, 100, 1));
    std::free(block);
}

TEST(sizes, requests_of_0_bytes_return_distinct_blocks)
{
    std::set<void*> blocks;
    for (member const& by : family)
        for (int i = 0; i < 100; ++i) {
            void* const block = by.allocate(0);
            EXPECT_NE(block, nullptr) << by.name;
            EXPECT_TRUE(blocks.insert(block).second) << by.name;
        }
    EXPECT_TRUE(blocks.insert(std::calloc(hidden(0), 8)).second);
    EXPECT_TRUE(blocks.insert(std::calloc(hidden(8), 0)).second);
    for (void* const block : blocks)
        std::free(block);
}

TEST(sizes, are_writable_up_to_the_usable_size)
{
    constexpr std::size_t count = 5;
    for (member const& by : family)
        for (std::size_t const bytes : ladder()) {
            void* blocks[count];
            std::size_t usable[count];
            for (unsigned i = 0; i < count; ++i) {
                blocks[i] = by.allocate(bytes);
                ASSERT_NE(blocks[i], nullptr) << by.name << " of " << bytes;
                usable[i] = ::malloc_usable_size(blocks[i]);
                ASSERT_GE(usable[i], bytes) << by.name << " of " << bytes;
                fill(blocks[i], usable[i], i);
            }
            for (unsigned i = 0; i < count; ++i) {
                ASSERT_TRUE(holds(blocks[i], usable[i], i)) << by.name << " of " << bytes;
                std::free(blocks[i]);
            }
        }
}

TEST(usable_size, malloc_usable_size_returns_0_for_null)
{
    EXPECT_EQ(::malloc_usable_size(nullptr), 0);
}

TEST(sizes, calloc_clears_reused_memory)
{
    for (std::size_t const bytes : ladder())
        for (int round = 0; round < 3; ++round) {
            void* const used = std::malloc(bytes);
            std::memset(hidden(used), 0xa5, bytes);
            std::free(used);
            void* const block = std::calloc(1, hidden(bytes));
            ASSERT_TRUE(is_clear(block, bytes)) << bytes;
            std::free(block);
        }
}

TEST(sizes, calloc_clears_the_memory_of_freed_blocks_of_other_sizes)
{
    for (std::size_t const large : {1 << 16, 1 << 20, 1 << 25})
        for (std::size_t const small : {16, 100, 1000, 10000, 100000}) {
            void* const used = std::malloc(large);
            std::memset(hidden(used), 0xa5, large);
            std::free(used);
            std::vector<void*> blocks;
            for (std::size_t taken = 0; taken < large; taken += small) {
                blocks.push_back(std::calloc(small, 1));
                ASSERT_TRUE(is_clear(blocks.back(), small)) << small << " in " << large;
                std::memset(blocks.back(), 0x5a, small);
            }
            for (void* const block : blocks)
                std::free(block);
        }
}

TEST(error_number, errno_is_unchanged_by_successful_calls_and_by_free)
{
    constexpr int untouched = 4242;
    for (member const& by : family)
        for (std::size_t const bytes : ladder()) {
            errno = untouched;
            void* block = by.allocate(bytes);
            ASSERT_EQ(errno, untouched) << by.name << " of " << bytes;
            block = std::realloc(hidden(block), bytes + bytes / 2 + 1);
            ASSERT_EQ(errno, untouched) << "realloc of " << by.name << " of " << bytes;
            std::free(hidden(block));
            ASSERT_EQ(errno, untouched) << "free of " << by.name << " of " << bytes;
        }
    std::free(hidden<void*>(nullptr));
    ::malloc_trim(0);
    EXPECT_EQ(errno, untouched);
}

} // namespace
