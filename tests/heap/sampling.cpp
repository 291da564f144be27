// Samples of what is allocated: how many, of what, and who is told.
#include "../support/child.hpp"
#include "../support/threads.hpp"

#include <mallard/heap.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include <sys/resource.h>

extern "C" [[gnu::weak]] void __asan_init(); // null without AddressSanitizer
extern "C" [[gnu::weak]] void __tsan_init();

namespace {

using namespace mallard::testing;

constexpr std::size_t all = 1; // as a mean: every block of 50 bytes or more is chosen
constexpr std::size_t mebibyte = 1 << 20;

/// What a heap profile keeps. Calls are made one at a time, so it needs no lock.
class profile {
public:
    explicit profile(std::size_t mean) { require(begin(mean) == 0, "sampling begins"); }
    profile(const profile&) = delete;
    profile& operator=(const profile&) = delete;
    ~profile() { mallard_sampling(0, nullptr, nullptr); }

    int begin(std::size_t mean) { return mallard_sampling(mean, tell, this); }

    std::map<void*, mallard_sample> live;
    std::size_t allocated = 0;
    std::size_t freed = 0;
    double bytes = 0; ///< as weighted
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
        mallard_free(mallard_malloc(100)); // of which nobody is told
        to.last = *sample;
        if (event == MALLARD_SAMPLE_ALLOCATED) {
            require(to.live.emplace(sample->block, *sample).second, "a new one");
            to.allocated += 1;
            to.bytes += sample->weight_bytes;
            return;
        }
        auto const known = to.live.find(sample->block);
        require(known != to.live.end(), "one that was told");
        require(known->second.bytes == sample->bytes, "as it was told");
        require(known->second.weight_bytes == sample->weight_bytes, "as it was told");
        to.live.erase(known);
        to.freed += 1;
    }
};

/// Six sigma of an estimate from so many samples.
double tolerance(std::size_t samples)
{
    return 6 / std::sqrt(static_cast<double>(samples));
}

void expect_about(double estimate, std::size_t truth, std::size_t samples)
{
    EXPECT_NEAR(estimate / static_cast<double>(truth), 1, tolerance(samples))
        << estimate << " of " << truth << " from " << samples;
}

TEST(sampling, estimates_what_is_asked_for_whatever_the_size)
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

TEST(sampling, tells_each_size_its_share)
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

TEST(sampling, estimates_what_is_live)
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

TEST(sampling, a_mean_may_change_at_any_time)
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

TEST(sampling, tells_what_was_asked_for_by_any_call)
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

TEST(sampling, nothing_counts_as_a_byte)
{
    profile p(1);
    for (int i = 0; i < 1000; ++i)
        mallard_free(mallard_malloc(0));
    EXPECT_EQ(p.last.bytes, 1u);
    expect_about(p.bytes, 1000, p.allocated);
}

TEST(sampling, a_block_that_realloc_leaves_is_told_with_its_new_size)
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

TEST(sampling, a_block_that_realloc_moves_is_freed_and_another_is_told)
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

TEST(sampling, blocks_from_before_are_nobodys_samples)
{
    void* small = mallard_malloc(100);
    void* large = mallard_malloc(3 * mebibyte);
    profile p(all);
    mallard_free(small);
    mallard_free(large);
    EXPECT_EQ(p.freed, 0u);
}

TEST(sampling, after_its_end_samples_are_blocks_like_others)
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

TEST(sampling, reaches_a_thread_that_runs_at_its_next_call)
{
    puppet other;
    auto const pair = [] { mallard_free(mallard_malloc(100)); };
    other([&] { // its list is neither empty nor full
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

TEST(sampling, chooses_the_first_block_of_a_thread_too)
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

TEST(sampling, is_told_of_frees_by_another_thread)
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

TEST(sampling, threads_come_and_go_and_free_each_others_while_it_begins_and_ends)
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

TEST(sampling, goes_on_in_the_child_of_a_fork)
{
    if (__tsan_init != nullptr)
        GTEST_SKIP() << "threads after fork are not for ThreadSanitizer";
    profile p(2000);
    at_work const others(
        2, [](std::size_t, std::size_t i) { mallard_free(mallard_malloc(i % 5000)); });
    for (int i = 0; i < 50; ++i)
        ASSERT_EQ(in_a_child([&] {
                      profile in_child(all);
                      mallard_free(mallard_malloc(100));
                      require(in_child.freed == 1, "this thread's are told");
                      in_a_thread([] { mallard_free(mallard_malloc(100)); });
                      require(in_child.freed == 2, "a new thread's too");
                  }),
                  "fine");
}

TEST(sampling, a_call_changes_nothing_of_what_it_is_in)
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

TEST(sampling, under_a_limit_is_as_without)
{
    profile p(all);
    mallard_limit(0, 10 * mebibyte, nullptr, nullptr);
    std::vector<void*> blocks;
    while (void* const block = mallard_malloc(1000))
        blocks.push_back(block);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_GT(blocks.size(), p.allocated); // the last ones fitted into no granule of their own
    mallard_limit(0, 0, nullptr, nullptr);
    for (void* const block : blocks)
        mallard_free(block);
    EXPECT_TRUE(p.live.empty());
}

TEST(sampling, finds_a_double_free)
{
    EXPECT_EQ(in_a_child([] {
                  profile p(all);
                  void* const block = mallard_malloc(100);
                  mallard_free(block);
                  mallard_free(block);
              }),
              "signal 6");
}

TEST(sampling, that_has_no_memory_does_not_begin)
{
    if (__asan_init != nullptr || __tsan_init != nullptr)
        GTEST_SKIP() << "a sanitizer needs the address space";
    EXPECT_EQ(in_a_child([] {
                  at_work const others(100, [](std::size_t, std::size_t) {
                      mallard_free(mallard_malloc(100));
                      std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  });
                  std::this_thread::sleep_for(std::chrono::milliseconds(100));
                  rlimit limit{};
                  ::getrlimit(RLIMIT_AS, &limit);
                  rlimit const none{0, limit.rlim_max};
                  require(::setrlimit(RLIMIT_AS, &none) == 0, "a limit is set");
                  auto const never = [](void*, mallard_sample_event, const mallard_sample*) {
                      require(false, "nobody is told");
                  };
                  require(mallard_sampling(all, never, nullptr) == ENOMEM, "it is refused");
                  mallard_free(mallard_malloc(100));
                  require(::setrlimit(RLIMIT_AS, &limit) == 0, "the limit is lifted");
                  profile p(all);
                  mallard_free(mallard_malloc(100));
                  require(p.freed >= 1, "it begins later");
              }),
              "fine");
}

} // namespace
