// Tests heaps that several threads use.
#include "../support/threads.hpp"
#include "../support/child.hpp"

#include <mallard/heap.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

namespace {

using mallard::heap;
using mallard::shared_heap;
using mallard::testing::in_threads;
using mallard::testing::rounds;

/// Passes blocks from one thread to another thread, one block at a time.
class mailbox {
public:
    bool put(void* block)
    {
        void* nothing = nullptr;
        return slot_.compare_exchange_strong(nothing, block, std::memory_order_release);
    }
    void* take() { return slot_.exchange(nullptr, std::memory_order_acquire); }

private:
    std::atomic<void*> slot_{nullptr};
};

TEST(heap_threads, any_thread_can_free_blocks_while_one_thread_allocates)
{
    heap h;
    mailbox boxes[3];
    std::atomic<bool> done{false};
    {
        std::vector<std::jthread> others;
        for (mailbox& box : boxes)
            others.emplace_back([&box, &done, &h] {
                bool last = false;
                for (std::size_t i = 0;; ++i) {
                    last = done;
                    if (void* const block = box.take())
                        i % 2 == 0 ? mallard_free(block) : h.deallocate(block);
                    else if (last)
                        return;
                }
            });
        std::size_t const sizes[] = {16, 200, 1000, 30000, 16, 16, 400, 5000};
        for (std::size_t i = 0; i < rounds(200'000); ++i) {
            std::size_t const bytes = i % 5000 == 0 ? 2 << 20 : sizes[i % 8];
            void* const block = h.allocate(bytes);
            std::memset(block, static_cast<int>(i), std::min<std::size_t>(bytes, 64));
            if (!boxes[i % 3].put(block))
                h.deallocate(block);
        }
        done = true;
    }
    EXPECT_EQ(h.stats().blocks_live, 0u);
    EXPECT_LT(h.stats().bytes_taken, std::size_t{64} << 20);
}

TEST(heap_threads, all_threads_allocate_from_a_shared_heap_and_free_each_others_blocks)
{
    shared_heap h;
    mailbox boxes[4];
    in_threads(4, [&](std::size_t me) {
        for (std::size_t i = 0; i < rounds(50'000); ++i) {
            std::size_t const bytes = 1 + (i * 37 + me * 11) % 3000;
            void* const block = h.allocate(bytes);
            std::memset(block, static_cast<int>(me), bytes);
            if (!boxes[(me + i) % 4].put(block))
                h.deallocate(block);
            if (void* const other = boxes[me].take())
                mallard_free(i % 3 == 0 ? mallard_realloc(other, bytes + 500) : other);
        }
    });
    for (mailbox& box : boxes)
        h.deallocate(box.take());
    EXPECT_EQ(h.stats().blocks_live, 0u);
}

TEST(heap_threads, several_threads_can_adopt_a_confined_heap_one_after_the_other)
{
    heap h;
    std::vector<void*> blocks;
    for (int i = 0; i < 20; ++i)
        std::jthread([&] {
            h.adopt();
            for (int k = 0; k < 100; ++k)
                blocks.push_back(h.allocate(50));
            for (int k = 0; k < 50; ++k) {
                h.deallocate(blocks.back());
                blocks.pop_back();
            }
        });
    h.adopt();
    EXPECT_EQ(h.stats().blocks_live, blocks.size());
}

TEST(heap_threads, another_thread_reallocates_a_block_within_its_heap)
{
    heap h;
    auto* block = static_cast<char*>(h.allocate(100));
    std::memcpy(block, "text", 5);
    std::jthread([&] { block = static_cast<char*>(mallard_realloc(block, 5000)); }).join();
    EXPECT_STREQ(block, "text");
    EXPECT_TRUE(h.owns(block));
    EXPECT_EQ(h.stats().blocks_live, 1u);
    h.release();
    EXPECT_EQ(h.stats().bytes_taken, 0u);
}

TEST(heap_threads, blocks_freed_by_another_thread_before_a_release_are_freed_once)
{
    heap h;
    for (std::size_t round = 0; round < rounds(300); ++round) {
        std::vector<void*> blocks;
        for (std::size_t i = 0; i < 500; ++i)
            blocks.push_back(h.allocate(16 + i % 7 * 100));
        std::jthread([&] {
            for (std::size_t i = 0; i < blocks.size(); i += 2)
                mallard_free(blocks[i]);
        }).join();
        if (round % 3 == 0)
            h.reset();
        else
            h.release();
        // Other threads sent batches of freed blocks before the heap was released. The batches must
        // not affect the new blocks, which are in the same memory.
        for (std::size_t i = 0; i < 100; ++i)
            std::memset(h.allocate(16 + i % 7 * 100), 0xff, 16);
        EXPECT_EQ(h.stats().blocks_live, 100u);
        h.release();
    }
}

TEST(heap_threads, all_threads_together_create_and_destroy_ten_thousand_heaps)
{
    in_threads(4, [](std::size_t me) {
        for (std::size_t i = 0; i < rounds(2500); ++i) {
            heap h;
            for (std::size_t k = 0; k < 50; ++k)
                std::memset(h.allocate(8 + (k * 31 + me) % 500), 1, 8);
        }
    });
}

TEST(heap_threads, the_child_of_a_fork_can_use_every_heap)
{
    shared_heap shared;
    heap confined;
    std::atomic<bool> done{false};
    std::jthread const other([&] {
        while (!done)
            shared.deallocate(shared.allocate(1000));
    });
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(mallard::testing::in_a_child([&] {
                      for (int k = 0; k < 1000; ++k) {
                          static_cast<void>(shared.allocate(64));
                          static_cast<void>(confined.allocate(64));
                      }
                  }),
                  "fine");
    done = true;
}

} // namespace
