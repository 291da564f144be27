// Tests that foonathan's stack begins with the same buffer as the other monotonic allocators.
#include <bench/lab/memories.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace mallard::bench;

bool is_in(std::span<std::byte> buffer, void const* block)
{
    return block >= buffer.data() && block < buffer.data() + buffer.size();
}

TEST(FoonathanStack, UsesTheBufferFirstAndThenTheHeap)
{
    std::vector<std::byte> memory(1 << 16);
    std::span<std::byte> const buffer(memory);
    for (int repetition = 0; repetition < 2; ++repetition) {
        lab::foonathan_stack stack({.buffer = buffer, .largest = 1 << 12});
        for (int i = 0; i < 15; ++i)
            EXPECT_TRUE(is_in(buffer, stack.allocate(1 << 12)));
        EXPECT_FALSE(is_in(buffer, stack.allocate(1 << 12)));
    }
}

TEST(FoonathanStack, UsesOnlyTheHeapWithoutABuffer)
{
    lab::foonathan_stack stack({.buffer = {}, .largest = 100'000});
    for (int i = 0; i < 100; ++i)
        static_cast<char*>(stack.allocate(100'000))[99'999] = 1;
}

} // namespace
