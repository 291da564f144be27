// Tests the functions that report on malloc or control malloc: malloc_trim, mallinfo2 and others.
#include "../support/child.hpp"
#include "../support/choices.hpp"
#include "../support/threads.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/resource.h>

namespace {

using namespace mallard::testing;

constexpr std::size_t mebibyte = 1 << 20;

std::vector<void*> allocate_many(std::size_t bytes, std::size_t each)
{
    std::vector<void*> blocks;
    for (std::size_t taken = 0; taken < bytes; taken += each) {
        blocks.push_back(std::malloc(each));
        std::memset(blocks.back(), 1, each);
    }
    return blocks;
}
void free_all(std::vector<void*>& blocks)
{
    for (void* const block : blocks)
        std::free(block);
    blocks.clear();
}

TEST(malloc_trim, returns_free_memory_and_keeps_blocks_in_use)
{
    void* const first = std::malloc(1000);
    fill(first, 1000, 1);
    std::vector<void*> blocks = allocate_many(100 * mebibyte, 10'000);
    void* const last = std::malloc(1000); // prevents that glibc trims by itself
    fill(last, 1000, 2);
    free_all(blocks);
    ::malloc_trim(0);
    EXPECT_LE(resident_bytes(), 40 * mebibyte);
    EXPECT_TRUE(holds(first, 1000, 1));
    EXPECT_TRUE(holds(last, 1000, 2));
    std::free(first);
    std::free(last);
}

TEST(malloc_trim, returns_whether_it_returned_memory)
{
    void* const first = std::malloc(1000);
    std::vector<void*> blocks = allocate_many(20 * mebibyte, 10'000);
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i)
        std::free(blocks[i]);
    std::size_t const before = resident_bytes();
    bool const said = ::malloc_trim(0) != 0;
    std::size_t const after = resident_bytes();
    EXPECT_TRUE(said || after + mebibyte > before);
    EXPECT_TRUE(!said || after < before);
    std::free(blocks.back());
    std::free(first);
}

TEST(mallinfo2, counts_blocks_in_use)
{
    std::size_t const before = ::mallinfo2().uordblks;
    std::vector<void*> blocks = allocate_many(10 * mebibyte, 10'000);
    std::size_t const between = ::mallinfo2().uordblks;
    EXPECT_GE(between, before + 10 * mebibyte);
    EXPECT_LE(between, before + 13 * mebibyte);
    free_all(blocks);
    EXPECT_LE(::mallinfo2().uordblks, before + 2 * mebibyte);
}

TEST(mallinfo2, counts_large_blocks_too)
{
    auto const in_use = [] {
        struct mallinfo2 const info = ::mallinfo2();
        return info.uordblks + info.hblkhd;
    };
    std::size_t const before = in_use();
    void* const block = std::malloc(50 * mebibyte);
    EXPECT_GE(in_use(), before + 50 * mebibyte);
    std::free(block);
    EXPECT_LE(in_use(), before + mebibyte);
}

TEST(mallinfo2, counts_each_byte_once)
{
    struct mallinfo2 const before = ::mallinfo2();
    void* const large = std::memset(std::malloc(64 * mebibyte), 1, 64 * mebibyte);
    void* const small = std::malloc(100);
    struct mallinfo2 const after = ::mallinfo2();
    std::size_t const more = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    EXPECT_GE(more, 64 * mebibyte + 100);
    EXPECT_LE(more, 65 * mebibyte);
    std::free(small);
    std::free(large);
}

/// Returns the number in the attribute `name` of each element of `text` that begins with `element`.
std::vector<std::size_t> numbers(const std::string& text, const std::string& element,
                                 const std::string& name)
{
    std::vector<std::size_t> found;
    for (std::size_t at = 0; (at = text.find('<' + element, at)) != std::string::npos; ++at) {
        std::size_t const value = text.find(' ' + name + "=\"", at);
        found.push_back(std::stoul(text.substr(value + name.size() + 3)));
    }
    return found;
}

/// Checks that the numbers in the output of Mallard's `malloc_info` add up.
void expect_sums_in_malloc_info()
{
    char* written = nullptr;
    std::size_t length = 0;
    std::FILE* const file = ::open_memstream(&written, &length);
    EXPECT_EQ(::malloc_info(0, file), 0);
    std::fclose(file);
    std::string const text = written;
    std::free(written);
    if (text.find("mallard") == std::string::npos)
        return;
    std::vector const bytes = numbers(text, "class", "bytes");
    std::vector const live = numbers(text, "class", "live");
    std::size_t blocks = numbers(text, "total type=\"large", "count")[0];
    std::size_t size = numbers(text, "total type=\"large", "size")[0];
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        blocks += live[i];
        size += live[i] * bytes[i];
    }
    EXPECT_EQ(numbers(text, "total type=\"live", "count")[0], blocks);
    EXPECT_EQ(numbers(text, "total type=\"live", "size")[0], size);
    std::size_t const current = numbers(text, "system type=\"current", "size")[0];
    EXPECT_EQ(numbers(text, "total type=\"free", "size")[0] + size, current);
    EXPECT_GE(numbers(text, "system type=\"max", "size")[0], current);
}

TEST(reports, all_statistics_functions_are_consistent_in_random_programs)
{
    seeded random(7);
    struct {
        void* block = nullptr;
        std::size_t bytes = 0;
    } slots[500];
    std::size_t live = 0;
    for (unsigned step = 0; step < 20'000; ++step) {
        auto& [block, bytes] = slots[random(500)];
        live -= bytes;
        bytes =
            random(3) == 0 ? 0 : 1 + random(std::size_t{1} << random(step % 100 == 0 ? 27 : 17));
        if (bytes == 0)
            std::free(std::exchange(block, nullptr));
        else
            block = std::realloc(block, bytes);
        live += bytes;
        if (step % 400 != 0)
            continue;
        struct mallinfo2 const info = ::mallinfo2();
        ASSERT_EQ(info.arena, info.uordblks + info.fordblks) << step;
        ASSERT_GE(info.uordblks + info.hblkhd, live) << step;
        ASSERT_EQ(info.hblkhd == 0, info.hblks == 0) << step;
        expect_sums_in_malloc_info();
    }
    for (auto& slot : slots)
        std::free(slot.block);
}

TEST(mallopt, accepts_the_options_of_glibc)
{
    EXPECT_EQ(::mallopt(M_TRIM_THRESHOLD, 128 * 1024), 1);
    EXPECT_EQ(::mallopt(M_TOP_PAD, 0), 1);
    EXPECT_EQ(::mallopt(M_MMAP_THRESHOLD, 128 * 1024), 1);
    EXPECT_EQ(::mallopt(M_MMAP_MAX, 65536), 1);
    EXPECT_EQ(::mallopt(M_PERTURB, 0), 1);
    EXPECT_EQ(::mallopt(M_ARENA_TEST, 1), 1);
    EXPECT_EQ(::mallopt(M_ARENA_MAX, 100), 1);
    std::free(hidden(std::malloc(100)));
}

TEST(malloc_info, writes_xml_and_rejects_options)
{
    char* text = nullptr;
    std::size_t length = 0;
    std::FILE* const file = ::open_memstream(&text, &length);
    EXPECT_EQ(::malloc_info(0, file), 0);
    std::fclose(file);
    EXPECT_EQ(std::string(text).substr(0, 7), "<malloc");
    EXPECT_NE(std::string(text).find("</malloc>"), std::string::npos);
    std::free(text);
    EXPECT_NE(::malloc_info(1, stdout), 0); // glibc returns EINVAL, although its manual says -1
}

TEST(malloc_stats, prints_to_standard_error)
{
    ::testing::internal::CaptureStderr();
    ::malloc_stats();
    EXPECT_NE(::testing::internal::GetCapturedStderr(), "");
}

/// Cancels threads that print a report. Printing is a cancellation point, and a cancelled thread
/// must not leave a lock held.
template <class Report>
void cancel_often(Report report)
{
    struct reporter {
        Report report;
        std::atomic<int> rounds = 0;
        void run()
        {
            for (;; ++rounds) {
                report();
                ::pthread_testcancel(); // malloc_stats is no cancellation point
            }
        }
    };
    for (int i = 0; i < 50; ++i) {
        reporter endless{report};
        pthread_t thread;
        auto const run = [](void* argument) -> void* {
            static_cast<reporter*>(argument)->run();
            return nullptr;
        };
        ASSERT_EQ(::pthread_create(&thread, nullptr, run, &endless), 0);
        while (endless.rounds == 0)
            std::this_thread::yield();
        ::pthread_cancel(thread);
        ::pthread_join(thread, nullptr);
        report();
        std::free(hidden(std::malloc(static_cast<std::size_t>(i) * 100)));
    }
}

TEST(malloc_info, survives_a_cancelled_thread)
{
    std::FILE* const file = std::fopen("/dev/null", "w");
    cancel_often([file] { ::malloc_info(0, file); });
    std::fclose(file);
}

TEST(malloc_stats, survives_a_cancelled_thread)
{
    ASSERT_NE(std::freopen("/dev/null", "w", stderr), nullptr);
    cancel_often([] { ::malloc_stats(); });
}

TEST(malloc_stats, is_no_cancellation_point)
{
    ASSERT_NE(std::freopen("/dev/null", "w", stderr), nullptr);
    pthread_t thread;
    bool goes_on = false;
    auto const run = [](void* argument) -> void* {
        ::pthread_cancel(::pthread_self());
        ::malloc_stats();
        *static_cast<bool*>(argument) = true;
        return nullptr;
    };
    ASSERT_EQ(::pthread_create(&thread, nullptr, run, &goes_on), 0);
    ::pthread_join(thread, nullptr);
    EXPECT_TRUE(goes_on);
}

TEST(reports, work_while_other_threads_allocate)
{
    std::atomic<bool> stop = false;
    std::vector<std::jthread> threads;
    for (int number = 0; number < 3; ++number)
        threads.emplace_back([&stop] {
            for (std::size_t i = 0; !stop; ++i)
                std::free(hidden(std::malloc(i % 100'000)));
        });
    std::FILE* const file = std::fopen("/dev/null", "w");
    for (int i = 0; i < 200; ++i) {
        EXPECT_LT(::mallinfo2().uordblks, 100 * mebibyte);
        ::malloc_info(0, file);
        ::malloc_trim(0);
    }
    std::fclose(file);
    stop = true;
}

} // namespace
