#include "pages.hpp"
#include "../support/length.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <type_traits>
#include <utility>

namespace {

using namespace mallard::testing;
using mallard::chunk;
using mallard::huge;
using mallard::huge_page_bytes;
using mallard::page_bytes;
using mallard::pages;
using mallard::pages_options;

static_assert(mallard::chunk_source<pages<>>);
static_assert(!std::is_copy_constructible_v<pages<>> && !std::is_copy_assignable_v<pages<>>);
static_assert(std::is_nothrow_move_constructible_v<pages<>>);
static_assert(std::is_nothrow_move_assignable_v<pages<>>);

TEST(pages, returns_whole_pages_and_reports_their_size)
{
    pages<> source;
    for (std::size_t const bytes : {std::size_t{0}, std::size_t{1}, page_bytes}) {
        chunk const c = source.try_take({bytes, 1});
        ASSERT_NE(c.data, nullptr);
        EXPECT_EQ(c.bytes, page_bytes);
        EXPECT_EQ(c.align, page_bytes);
        source.give(c);
    }
    chunk const more = source.try_take({page_bytes + 1});
    EXPECT_EQ(more.bytes, 2 * page_bytes);
    source.give(more);
}

TEST(pages, returns_zeroed_and_writable_bytes)
{
    pages<> source;
    chunk const c = source.try_take({mib});
    ASSERT_NE(c.data, nullptr);
    for (std::byte* p = begin(c); p != end(c); ++p)
        ASSERT_EQ(*p, std::byte{});
    std::memset(c.data, 0xa5, c.bytes);
    source.give(c);
}

TEST(pages, honours_every_alignment_up_to_a_gibibyte)
{
    pages<> source;
    for (std::size_t align = 1; align <= gib; align *= 2) {
        chunk const c = source.try_take({3 * page_bytes, align});
        ASSERT_NE(c.data, nullptr) << align << ": " << source.last_failure();
        EXPECT_TRUE(is_aligned(c, align)) << align;
        EXPECT_GE(c.align, align);
        *begin(c) = *(end(c) - 1) = std::byte{1};
        source.give(c);
    }
}

TEST(pages, maps_exactly_the_chunk_for_any_alignment)
{
    pages<> source;
    for (std::size_t const align : {page_bytes, huge_page_bytes, gib}) {
        std::size_t const before = mapped_pages();
        chunk const c = source.try_take({mib, align});
        std::size_t const between = mapped_pages();
        source.give(c);
        EXPECT_EQ(between - before, mib / page_bytes) << align;
        EXPECT_EQ(mapped_pages(), before) << align;
    }
}

TEST(pages, unmaps_chunks_in_any_order)
{
    pages<pages_options{.guard = true}> source;
    std::vector<chunk> chunks(64);
    std::size_t const before = mapped_pages();
    for (std::size_t i = 0; i < chunks.size(); ++i)
        chunks[i] = source.try_take({(i % 7 + 1) * page_bytes, page_bytes << i % 5});
    for (std::size_t i = 0; i < chunks.size(); ++i)
        source.give(chunks[i * 29 % chunks.size()]);
    EXPECT_EQ(mapped_pages(), before);
}

TEST(pages, fails_for_sizes_beyond_the_address_space)
{
    pages<> source;
    EXPECT_EQ(source.last_error(), 0);
    EXPECT_STREQ(source.last_failure(), "");
    std::size_t const before = mapped_pages();
    for (std::size_t const bytes : {SIZE_MAX, SIZE_MAX - page_bytes, SIZE_MAX / 2, SIZE_MAX / 16}) {
        EXPECT_EQ(source.try_take({bytes}).data, nullptr) << bytes;
        EXPECT_EQ(source.last_error(), ENOMEM);
        EXPECT_TRUE(says(source.last_failure(), "address space")) << source.last_failure();
    }
    EXPECT_EQ(source.try_take({1, std::size_t{1} << 63}).data, nullptr);
    EXPECT_EQ(source.try_take({SIZE_MAX, std::size_t{1} << 63}).data, nullptr);
    EXPECT_EQ(mapped_pages(), before);
}

TEST(pages, explains_a_failure_by_the_limit_on_address_space)
{
    EXPECT_EXIT(
        {
            pages<> source;
            limit(RLIMIT_AS, 0);
            std::size_t const before = mapped_pages();
            chunk const c = source.try_take({mib});
            report(c.data == nullptr && mapped_pages() == before && source.last_error() == ENOMEM &&
                   says(source.last_failure(), "ulimit -v"));
        },
        testing::ExitedWithCode(0), "");
}

TEST(pages, unmaps_a_chunk_whose_memory_cannot_be_committed)
{
    if (!may_refuse_memory())
        GTEST_SKIP() << refuses_sanitizers;
    EXPECT_EXIT(take_without_memory<pages_options{}>(), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(take_without_memory<pages_options{.guard = true}>(), testing::ExitedWithCode(0),
                "");
}

TEST(pages, fails_for_more_memory_than_the_machine_has)
{
    if (proc_file("/proc/sys/vm/overcommit_memory").text[0] == '1')
        GTEST_SKIP() << "this system overcommits memory";
    pages<> source;
    std::size_t const before = mapped_pages();
    EXPECT_EQ(source.try_take({std::size_t{1} << 46}).data, nullptr);
    EXPECT_EQ(mapped_pages(), before);
    EXPECT_STRNE(source.last_failure(), "");
}

TEST(pages, crashes_at_an_access_just_outside_a_guarded_chunk)
{
    pages<pages_options{.guard = true}> source;
    chunk const c = source.try_take({page_bytes, huge_page_bytes});
    ASSERT_NE(c.data, nullptr);
    EXPECT_TRUE(is_aligned(c, huge_page_bytes));
    *begin(c) = *(end(c) - 1) = std::byte{1};
    EXPECT_DEATH(*static_cast<volatile std::byte*>(begin(c) - 1) = std::byte{1}, "");
    EXPECT_DEATH(*static_cast<volatile std::byte*>(end(c)) = std::byte{1}, "");
    source.give(c);
}

TEST(pages, are_not_resident_before_they_are_touched)
{
    pages<> source;
    chunk const c = source.try_take({mib});
    EXPECT_EQ(resident_pages(begin(c), c.bytes), 0U);
    *begin(c) = std::byte{1};
    EXPECT_EQ(resident_pages(begin(c), c.bytes), 1U);
    source.give(c);
}

TEST(pages, are_all_resident_when_populated)
{
    pages<pages_options{.populate = true}> source;
    chunk const c = source.try_take({mib});
    EXPECT_EQ(resident_pages(begin(c), c.bytes), mib / page_bytes);
    source.give(c);

    pages<pages_options{.populate = true, .reserve_bytes = gib}> in_range;
    chunk const d = in_range.try_take({mib});
    EXPECT_EQ(resident_pages(begin(d), d.bytes), mib / page_bytes);
    EXPECT_EQ(resident_pages(end(d), mib), 0U);
}

TEST(pages, are_whole_huge_pages_with_madvise)
{
    pages<pages_options{.huge = huge::madvise}> source;
    chunk const c = source.try_take({1});
    ASSERT_NE(c.data, nullptr) << source.last_failure();
    EXPECT_EQ(c.bytes, huge_page_bytes);
    EXPECT_TRUE(is_aligned(c, huge_page_bytes));
    std::memset(c.data, 1, c.bytes);
    source.give(c);
}

TEST(pages, fail_with_hugetlb_when_no_huge_pages_are_reserved_and_map_nothing)
{
    if (has_huge_pages())
        GTEST_SKIP() << "huge pages are reserved on this machine";
    pages<pages_options{.huge = huge::hugetlb, .guard = true}> source;
    std::size_t const before = mapped_pages();
    EXPECT_EQ(source.try_take({1}).data, nullptr);
    EXPECT_EQ(mapped_pages(), before);
    EXPECT_NE(source.last_error(), 0);
    EXPECT_TRUE(says(source.last_failure(), "huge pages")) << source.last_failure();
}

TEST(pages, come_from_the_reserved_huge_pages_with_hugetlb)
{
    if (!has_huge_pages())
        GTEST_SKIP() << "no huge pages are reserved on this machine";
    pages<pages_options{.huge = huge::hugetlb, .guard = true}> source;
    std::size_t const before = mapped_pages();
    chunk const c = source.try_take({1});
    ASSERT_NE(c.data, nullptr) << source.last_failure();
    EXPECT_EQ(c.bytes, huge_page_bytes);
    std::memset(c.data, 1, c.bytes);
    source.give(c);
    EXPECT_EQ(mapped_pages(), before);
}

TEST(pages, leave_mappings_of_other_threads_alone_when_hugetlb_fails)
{
    std::size_t const too_much = (free_huge_pages() + 1) * huge_page_bytes;
    std::atomic<bool> done = false;
    std::thread other([&] {
        while (!done) {
            void* const mine = ::mmap(nullptr, huge_page_bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            for (std::size_t i = 0; mine != MAP_FAILED && i < huge_page_bytes; i += page_bytes)
                static_cast<volatile char*>(mine)[i] = 1;
            if (mine != MAP_FAILED)
                ::munmap(mine, huge_page_bytes);
        }
    });
    pages<pages_options{.huge = huge::hugetlb}> each_alone;
    pages<pages_options{.huge = huge::hugetlb, .reserve_bytes = gib}> in_a_range;
    for (std::size_t i = 0; i < repeated(5000); ++i) {
        EXPECT_EQ(each_alone.try_take({too_much}).data, nullptr);
        EXPECT_EQ(in_a_range.try_take({too_much}).data, nullptr);
    }
    done = true;
    other.join();
}

/// Compares the source with a list of the live chunks.
template <pages_options O>
void take_and_give_at_random()
{
    constexpr std::size_t guard = O.guard ? page_bytes : 0;
    constexpr std::size_t steps = 4000;
    std::vector<chunk> live;
    live.reserve(steps);
    std::size_t refused = 0;
    std::uint32_t seed = 1;
    auto const random = [&](std::size_t below) {
        seed = seed * 1664525 + 1013904223;
        return (seed >> 8) % below;
    };
    std::size_t const before = mapped_pages();
    {
        pages<O> source;
        for (std::size_t step = 0; step < steps; ++step) {
            if (random(5) < 3) {
                chunk const c = source.try_take({random(40 * page_bytes), page_bytes << random(6)});
                if (c.data == nullptr) {
                    ++refused;
                    continue;
                }
                ASSERT_TRUE(is_aligned(c, c.align));
                for (chunk const other : live)
                    ASSERT_TRUE(end(c) + guard <= begin(other) || end(other) + guard <= begin(c));
                ASSERT_EQ(*begin(c), std::byte{});
                ASSERT_EQ(*(end(c) - 1), std::byte{});
                *begin(c) = *(end(c) - 1) = std::byte{1};
                live.push_back(c);
            } else if (!live.empty()) {
                std::swap(live[random(live.size())], live.back());
                source.give(live.back());
                live.pop_back();
            }
        }
        EXPECT_EQ(refused > 0, O.reserve_bytes != 0) << source.last_failure();
        for (chunk const c : live)
            source.give(c);
        if (O.reserve_bytes != 0) {
            EXPECT_NE(source.try_take({O.reserve_bytes}).data, nullptr)
                << "a place in the range was lost";
        }
    }
    EXPECT_EQ(mapped_pages(), before);
}

TEST(pages, never_overlap_or_leak_in_random_programs)
{
    take_and_give_at_random<pages_options{}>();
    take_and_give_at_random<pages_options{.guard = true}>();
    take_and_give_at_random<pages_options{.reserve_bytes = 2 * mib}>();
    take_and_give_at_random<pages_options{.guard = true, .reserve_bytes = 2 * mib}>();
    take_and_give_at_random<pages_options{
        .huge = huge::madvise, .guard = true, .reserve_bytes = 64 * mib}>();
}

} // namespace
