// Adaptors that several threads use at the same time. Their counts are exact at the end, and within
// bounds at every moment.
#include "../support/choices.hpp"
#include "../support/threads.hpp"

#include <mallard/adapt/limited.hpp>
#include <mallard/adapt/synchronized.hpp>
#include <mallard/arena.hpp>
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <gtest/gtest.h>

#include <array>

namespace {

using namespace mallard::testing;
using mallard::call_counts;
using mallard::counted;
using mallard::counting_scope;
using mallard::default_heap;
using mallard::layout;
using mallard::limited;
using mallard::pool;
using mallard::pool_options;
using mallard::sync;

constexpr std::size_t threads = 4;
using shared_pool = pool<default_heap, pool_options{.block = 64, .threads = sync::mutex}>;

/// Lets each thread allocate and free blocks of its own sizes. Returns the allocated bytes.
template <class A>
std::array<call_counts, threads> use(A& memory)
{
    std::array<call_counts, threads> all;
    in_threads(threads, [&](std::size_t number) {
        seeded choose(number);
        std::vector<std::pair<void*, layout>> mine;
        call_counts& c = all[number];
        for (std::size_t i = 0; i < rounds(20'000); ++i)
            if (mine.empty() || (mine.size() < 50 && choose(2) == 0)) {
                layout const l(choose(64), 8);
                if (void* const block = memory.try_allocate(l)) {
                    mine.emplace_back(block, l);
                    c.allocations += 1;
                    c.bytes_allocated += l.bytes;
                } else {
                    c.failures += 1;
                }
            } else {
                std::swap(mine[choose(mine.size())], mine.back());
                memory.deallocate(mine.back().first, mine.back().second);
                mine.pop_back();
            }
        for (auto const& [block, l] : mine)
            memory.deallocate(block, l);
    });
    return all;
}

call_counts sum(const std::array<call_counts, threads>& all)
{
    call_counts s;
    for (call_counts const& c : all) {
        s.allocations += c.allocations;
        s.failures += c.failures;
        s.bytes_allocated += c.bytes_allocated;
    }
    return s;
}

void expect_totals(const call_counts& c, const call_counts& expected)
{
    EXPECT_EQ(c.allocations, expected.allocations);
    EXPECT_EQ(c.failures, expected.failures);
    EXPECT_EQ(c.bytes_allocated, expected.bytes_allocated);
    EXPECT_TRUE(c.is_balanced());
    EXPECT_LE(c.blocks_peak, threads * 50);
    EXPECT_GE(c.blocks_peak, 30u);
    EXPECT_LE(c.bytes_peak, threads * 50 * 63);
}

TEST(shared_counted, counts_exact_totals_of_all_threads)
{
    counted<shared_pool, sync::lock_free> memory;
    counting_scope whole(memory);
    call_counts const expected = sum(use(memory));
    expect_totals(memory.counts(), expected);
    EXPECT_EQ(whole.counts(), memory.counts());
}

TEST(shared_counted, can_be_read_and_scoped_while_other_threads_allocate)
{
    counted<shared_pool, sync::lock_free> memory;
    std::atomic<bool> done = false;
    std::jthread reader([&] {
        while (!done) {
            counting_scope stretch(memory);
            call_counts const now = memory.counts();
            EXPECT_LE(now.blocks_peak, threads * 50);
            EXPECT_LE(stretch.counts().blocks_peak, threads * 50);
        }
    });
    call_counts const expected = sum(use(memory));
    done = true;
    reader.join();
    expect_totals(memory.counts(), expected);
}

/// A source that counts the bytes in use, and checks them at every moment.
class strict : public shared_pool {
public:
    static constexpr std::size_t bytes_max = 1200, blocks_max = 40;

    void* try_allocate(layout l) noexcept
    {
        require(bytes_.fetch_add(l.bytes) + l.bytes <= bytes_max, "a budget of bytes holds");
        require(blocks_.fetch_add(1) + 1 <= blocks_max, "a budget of blocks holds");
        return shared_pool::try_allocate(l);
    }
    void* allocate(layout l) { return try_allocate(l); }
    void deallocate(void* block, layout l) noexcept
    {
        bytes_.fetch_sub(l.bytes);
        blocks_.fetch_sub(1);
        shared_pool::deallocate(block, l);
    }

private:
    std::atomic<std::size_t> bytes_{0}, blocks_{0};
};

TEST(shared_limited, never_exceeds_the_budget_over_all_threads)
{
    limited<strict, sync::lock_free> memory(
        {.bytes = strict::bytes_max, .blocks = strict::blocks_max});
    call_counts const expected = sum(use(memory));
    EXPECT_GT(expected.failures, 0u) << "otherwise nothing was tested";
    EXPECT_EQ(memory.bytes_left(), strict::bytes_max);
    EXPECT_EQ(memory.blocks_left(), strict::blocks_max);
    EXPECT_STRNE(memory.last_failure(), "");
}

TEST(shared_synchronized, makes_any_allocator_safe_to_share)
{
    mallard::synchronized<counted<limited<mallard::arena<>>>> memory(
        std::in_place, std::in_place, mallard::budget{.bytes = 5000});
    call_counts const expected = sum(use(memory));
    expect_totals(memory.counts(), expected);
}

TEST(shared_source, may_be_called_concurrently_by_pools_that_share_it)
{
    counted<limited<default_heap, sync::lock_free>, sync::lock_free> heap(
        std::in_place, mallard::budget{.bytes = 1 << 22});
    using heap_ref = mallard::ref<decltype(heap)>;
    static_assert(mallard::shareable<heap_ref>);
    in_threads(threads, [&](std::size_t) {
        for (std::size_t i = 0; i < rounds(200); ++i) {
            pool<heap_ref, pool_options{.block = 64, .grow = {.first = 8192}}> own{heap_ref(heap)};
            for (int k = 0; k < 300; ++k)
                require(own.try_allocate() != nullptr, "there is enough for all");
        }
    });
    EXPECT_TRUE(heap.counts().is_balanced());
    EXPECT_EQ(heap.upstream().bytes_left(), std::size_t{1} << 22);
}

} // namespace
