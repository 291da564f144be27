// Tests the sampling of allocations: how many blocks are sampled, and what the program's function
// is told about them.
#include "../support/asan.hpp"
#include "../support/child.hpp"
#include "../support/threads.hpp"
#include "../support/tsan.hpp"

#include <mallard/heap.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include <sys/resource.h>

namespace {

using namespace mallard::testing;

constexpr std::size_t all = 1; // mean distance: samples each block of 50 bytes or more
constexpr std::size_t mebibyte = 1 << 20;

/// A heap profile. The engine calls it from one thread at a time, so the profile needs no lock.
class profile {
public:
    explicit profile(std::size_t mean) { require(begin(mean) == 0, "sampling starts"); }
    profile(const profile&) = delete;
    profile& operator=(const profile&) = delete;
    ~profile() { mallard_sampling(0, nullptr, nullptr); }

    int begin(std::size_t mean) { return mallard_sampling(mean, tell, this); }

    std::map<void*, mallard_sample> live;
    std::size_t allocated = 0;
    std::size_t freed = 0;
    double bytes = 0; ///< sum of the weights
    mallard_sample last{};

    double live_bytes() const
    {
        double sum = 0;
        for (auto const& [block, sample] : live)
            sum += sample.weight_bytes;
        return sum;
    }

private:
    static void tell(void* context, mallard_sample_event event, const mallard_sample* sample)
    {
        auto& to = *static_cast<profile*>(context);
        // This block is not reported, because it is allocated while the engine calls this function.
        mallard_free(mallard_malloc(100));
        to.last = *sample;
        if (event == MALLARD_SAMPLE_ALLOCATED) {
            require(to.live.emplace(sample->block, *sample).second, "the block is not live yet");
            to.allocated += 1;
            to.bytes += sample->weight_bytes;
            return;
        }
        auto const known = to.live.find(sample->block);
        require(known != to.live.end(), "the block was reported");
        require(known->second.bytes == sample->bytes, "as it was reported");
        require(known->second.weight_bytes == sample->weight_bytes, "as it was reported");
        to.live.erase(known);
        to.freed += 1;
    }
};

/// Returns six standard deviations of an estimate, as a fraction of the estimate.
double tolerance(std::size_t samples)
{
    return 6 / std::sqrt(static_cast<double>(samples));
}

void expect_about(double estimate, std::size_t truth, std::size_t samples)
{
    EXPECT_NEAR(estimate / static_cast<double>(truth), 1, tolerance(samples))
        << estimate << " of " << truth << " from " << samples;
}

TEST(sampling, estimates_the_requested_bytes_for_every_size)
{
    for (std::size_t const bytes : {1, 16, 24, 100, 1000, 5000, 20'000, 300'000, 3'000'000}) {
        std::size_t const count = rounds(bytes < 10'000 ? 1'000'000 : 50'000);
        profile p(count * bytes / 5000);
        for (std::size_t i = 0; i < count; ++i)
            mallard_free(mallard_malloc(bytes));
        expect_about(p.bytes, count * bytes, p.allocated);
        EXPECT_GT(p.allocated, 2500u) << bytes;
        EXPECT_EQ(p.freed, p.allocated);
    }
}

TEST(sampling, estimates_the_share_of_each_size)
{
    profile p(10'000);
    double estimate[3] = {};
    std::size_t const sizes[3] = {40, 700, 9000};
    for (std::size_t i = 0; i < rounds(600'000); ++i) {
        double const before = p.bytes;
        mallard_free(mallard_malloc(sizes[i % 3]));
        estimate[i % 3] += p.bytes - before;
    }
    for (int i = 0; i < 3; ++i)
        expect_about(estimate[i], rounds(600'000) / 3 * sizes[i],
                     rounds(600'000) / 3 * sizes[i] / 10'000);
}

TEST(sampling, estimates_the_live_bytes)
{
    profile p(4096);
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < rounds(200'000); ++i)
        blocks.push_back(mallard_malloc(200));
    for (std::size_t i = 0; i < blocks.size(); i += 2)
        mallard_free(blocks[i]);
    expect_about(p.live_bytes(), blocks.size() / 2 * 200, p.live.size());
    for (std::size_t i = 1; i < blocks.size(); i += 2)
        mallard_free(blocks[i]);
    EXPECT_TRUE(p.live.empty());
}

TEST(sampling, accepts_another_mean_sampling_distance_at_any_time)
{
    profile p(std::size_t{1} << 60);
    for (int i = 0; i < 1000; ++i)
        mallard_free(mallard_malloc(1000));
    EXPECT_EQ(p.allocated, 0u);
    EXPECT_EQ(p.begin(10'000), 0);
    for (std::size_t i = 0; i < rounds(100'000); ++i)
        mallard_free(mallard_malloc(1000));
    expect_about(p.bytes, rounds(100'000) * 1000, p.allocated);
}

TEST(sampling, reports_the_requested_size_of_every_kind_of_call)
{
    profile p(all);
    std::size_t expected = 0;
    auto const expect_told = [&](void* block, std::size_t bytes) {
        EXPECT_EQ(p.allocated, ++expected) << bytes;
        EXPECT_EQ(p.last.block, block);
        EXPECT_EQ(p.last.bytes, bytes);
        EXPECT_EQ(p.last.weight_bytes, static_cast<double>(bytes));
        EXPECT_GE(mallard_usable_size(block), bytes);
        std::memset(block, 0x55, mallard_usable_size(block));
        mallard_free(block);
        EXPECT_EQ(p.freed, expected);
    };
    for (std::size_t const bytes : {60, 1000, 1025, 16'384, 100'000, 1 << 20, 5 << 20, 40 << 20}) {
        expect_told(mallard_malloc(bytes), bytes);
        char* const zeroed = static_cast<char*>(mallard_calloc(1, bytes));
        for (std::size_t i = 0; i < bytes; ++i)
            ASSERT_EQ(zeroed[i], 0);
        expect_told(zeroed, bytes);
        for (std::size_t const align : {64, 4096, 16'384, 1 << 20}) {
            void* const block = mallard_aligned_alloc(align, bytes);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % align, 0u);
            expect_told(block, bytes);
        }
    }
}

TEST(sampling, counts_a_request_of_0_bytes_as_1_byte)
{
    profile p(1);
    for (int i = 0; i < 1000; ++i)
        mallard_free(mallard_malloc(0));
    EXPECT_EQ(p.last.bytes, 1u);
    expect_about(p.bytes, 1000, p.allocated);
}

TEST(sampling, reports_the_new_size_when_realloc_leaves_a_block_in_place)
{
    profile p(all);
    void* const block = mallard_malloc(200);
    EXPECT_EQ(mallard_realloc(block, 210), block);
    EXPECT_EQ(p.allocated, 2u);
    EXPECT_EQ(p.freed, 1u);
    EXPECT_EQ(p.last.bytes, 210u);
    EXPECT_EQ(p.last.weight_bytes, 210u);
    EXPECT_EQ(p.live.size(), 1u);
    mallard_free(block);
    EXPECT_TRUE(p.live.empty());
}

TEST(sampling, reports_a_free_and_a_new_block_when_realloc_moves_a_block)
{
    profile p(all);
    auto* block = static_cast<char*>(mallard_malloc(100));
    std::strcpy(block, "text");
    for (std::size_t const bytes : {1000, 300'000, 40'000'000, 2'000'000, 70}) {
        block = static_cast<char*>(mallard_realloc(block, bytes));
        EXPECT_STREQ(block, "text");
        EXPECT_EQ(p.live.size(), 1u);
        EXPECT_EQ(p.live[block].bytes, bytes);
    }
    mallard_free(block);
    EXPECT_TRUE(p.live.empty());
}

TEST(sampling, does_not_report_blocks_allocated_before_it_started)
{
    void* small = mallard_malloc(100);
    void* large = mallard_malloc(3 * mebibyte);
    profile p(all);
    mallard_free(small);
    mallard_free(large);
    EXPECT_EQ(p.freed, 0u);
}

TEST(sampling, reports_no_sampled_block_after_it_stopped)
{
    void* block = nullptr;
    void* other = nullptr;
    {
        profile p(all);
        block = mallard_malloc(100);
        other = mallard_malloc(100);
    }
    mallard_free(block);
    other = mallard_realloc(other, 110);
    other = mallard_realloc(other, 5000);
    profile second(all);
    mallard_free(other);
    EXPECT_EQ(second.freed + second.allocated, 0u);
}

TEST(sampling, starts_in_a_running_thread_at_its_next_call)
{
    puppet other;
    auto const pair = [] { mallard_free(mallard_malloc(100)); };
    other([&] { // the list of that thread is then neither empty nor full
        for (int i = 0; i < 1000; ++i)
            pair();
    });
    for (int i = 0; i < 10; ++i) {
        profile p(all);
        other(pair);
        EXPECT_EQ(p.allocated, 1u);
        EXPECT_EQ(p.freed, 1u);
    }
    other(pair);
    profile p(all);
    in_a_thread(pair);
    EXPECT_EQ(p.allocated, 1u);
}

TEST(sampling, can_choose_the_first_block_of_a_thread)
{
    profile p(all);
    for (std::size_t const bytes : {100, 50'000, 5 << 20, 50 << 20}) {
        in_a_thread([=] { mallard_free(mallard_malloc(bytes)); });
        EXPECT_EQ(p.last.bytes, bytes);
        in_a_thread([=] { mallard_free(mallard_calloc(1, bytes + 1)); });
        EXPECT_EQ(p.last.bytes, bytes + 1);
    }
    EXPECT_EQ(p.freed, 8u);
}

TEST(sampling, reports_frees_by_another_thread)
{
    profile p(all);
    void* const block = mallard_malloc(100);
    in_a_thread([=] { mallard_free(block); });
    EXPECT_EQ(p.freed, 1u);
}

TEST(sampling, does_not_choose_blocks_of_heaps)
{
    profile p(all);
    mallard::heap h;
    for (std::size_t const bytes : {100, 30'000, 3 << 20})
        h.deallocate(h.allocate(bytes));
    EXPECT_EQ(p.allocated, 0u);
}

TEST(sampling, starts_and_stops_while_threads_start_and_exit_and_free_each_others_blocks)
{
    std::atomic<void*> boxes[16] = {};
    std::atomic<bool> done = false;
    auto const exchange = [&](std::size_t number, std::size_t i) {
        std::size_t const bytes = 1 + (i * 7919 + number) % (i % 50 == 0 ? 400'000 : 3000);
        auto* const block = static_cast<char*>(mallard_malloc(bytes));
        block[0] = block[bytes - 1] = 1;
        mallard_free(boxes[(i + number) % 16].exchange(block));
    };
    {
        at_work const steady(2, exchange);
        std::jthread const starter([&] {
            while (!done)
                in_threads(2, [&](std::size_t number) {
                    for (std::size_t i = 0; i < 100; ++i)
                        exchange(number, i);
                });
        });
        for (std::size_t round = 0; round < rounds(300); ++round) {
            profile p(5000);
            for (std::size_t i = 0; i < 500; ++i)
                exchange(2, i);
        }
        done = true;
    }
    for (auto& box : boxes)
        mallard_free(box);
}

TEST(sampling, continues_in_the_child_of_a_fork)
{
    if (has_tsan())
        GTEST_SKIP() << "ThreadSanitizer does not support threads after fork";
    profile p(2000);
    // With AddressSanitizer, no other threads run. If a block of another thread were sampled, the
    // profile would call AddressSanitizer's malloc. Its locks are not held across a fork (g++ 12),
    // so the child could find a lock that stays locked forever.
    at_work const others(has_asan() ? 0 : 2, [](std::size_t, std::size_t i) {
        mallard_free(mallard_malloc(i % 5000));
    });
    for (int i = 0; i < 50; ++i)
        ASSERT_EQ(in_a_child([&] {
                      profile in_child(all);
                      mallard_free(mallard_malloc(100));
                      require(in_child.freed == 1, "blocks of this thread are reported");
                      in_a_thread([] { mallard_free(mallard_malloc(100)); });
                      require(in_child.freed == 2, "blocks of a new thread, too");
                  }),
                  "fine");
}

TEST(sampling, keeps_errno_and_rejects_changes_from_within_its_callback)
{
    static int answer;
    auto const begin_again = [](void*, mallard_sample_event, const mallard_sample*) {
        answer =
            mallard_sampling(all, nullptr, nullptr) * 1000 + mallard_sampling(0, nullptr, nullptr);
        errno = EBADF;
    };
    EXPECT_EQ(mallard_sampling(all, nullptr, nullptr), EINVAL);
    ASSERT_EQ(mallard_sampling(all, begin_again, nullptr), 0);
    errno = 0;
    mallard_free(mallard_malloc(100));
    EXPECT_EQ(errno, 0);
    EXPECT_EQ(answer, EINVAL * 1000 + EDEADLK);
    EXPECT_EQ(mallard_sampling(0, nullptr, nullptr), 0);
}

TEST(sampling, works_under_a_memory_limit)
{
    profile p(all);
    mallard_limit(0, 10 * mebibyte, nullptr, nullptr);
    std::vector<void*> blocks;
    while (void* const block = mallard_malloc(1000))
        blocks.push_back(block);
    EXPECT_EQ(errno, ENOMEM);
    // The limit left no slice for the last blocks, so they were not sampled.
    EXPECT_GT(blocks.size(), p.allocated);
    mallard_limit(0, 0, nullptr, nullptr);
    for (void* const block : blocks)
        mallard_free(block);
    EXPECT_TRUE(p.live.empty());
}

TEST(sampling, reports_a_double_free_of_a_sampled_block)
{
    EXPECT_EQ(in_a_child([] {
                  profile p(all);
                  void* const block = mallard_malloc(100);
                  mallard_free(block);
                  mallard_free(block);
              }),
              "signal 6");
}

TEST(sampling, does_not_start_if_memory_is_exhausted)
{
    if (has_asan() || has_tsan())
        GTEST_SKIP() << "a sanitizer needs the address space";
    EXPECT_EQ(in_a_child([] {
                  std::atomic<std::size_t> begun = 0;
                  at_work const others(100, [&](std::size_t, std::size_t round) {
                      mallard_free(mallard_malloc(100));
                      begun += round == 0;
                      std::this_thread::yield();
                  });
                  wait_until([&] { return begun == 100; }, "100 threads have allocated");
                  rlimit limit{};
                  ::getrlimit(RLIMIT_AS, &limit);
                  rlimit const none{0, limit.rlim_max};
                  require(::setrlimit(RLIMIT_AS, &none) == 0, "a limit is set");
                  auto const never = [](void*, mallard_sample_event, const mallard_sample*) {
                      require(false, "nothing is reported");
                  };
                  require(mallard_sampling(all, never, nullptr) == ENOMEM, "the start fails");
                  mallard_free(mallard_malloc(100));
                  require(::setrlimit(RLIMIT_AS, &limit) == 0, "the limit is lifted");
                  profile p(all);
                  mallard_free(mallard_malloc(100));
                  require(p.freed >= 1, "it starts later");
              }),
              "fine");
}

} // namespace
