#include "pages.hpp"

#include <cstring>
#include <utility>

namespace {

using namespace mallard::testing;
using mallard::chunk;
using mallard::huge;
using mallard::huge_page_bytes;
using mallard::page_bytes;
using mallard::pages;
using mallard::pages_options;

TEST(pages_in_a_range, unmap_a_range_without_memory_for_its_bits_and_retry_later)
{
    if (!may_refuse_memory())
        GTEST_SKIP() << refuses_sanitizers;
    EXPECT_EXIT(take_without_memory<pages_options{.reserve_bytes = gib}>(),
                testing::ExitedWithCode(0), "");
}

TEST(pages_in_a_range, keep_a_place_free_if_its_memory_cannot_be_committed)
{
    if (!may_refuse_memory())
        GTEST_SKIP() << refuses_sanitizers;
    EXPECT_EXIT(
        {
            pages<pages_options{.reserve_bytes = gib}> source;
            chunk const first = source.try_take({page_bytes});
            limit(RLIMIT_DATA, page_bytes);
            chunk const refused = source.try_take({mib});
            limit(RLIMIT_DATA, RLIM_INFINITY);
            chunk const next = source.try_take({page_bytes});
            report(refused.data == nullptr && next.data == end(first));
        },
        testing::ExitedWithCode(0), "");
}

TEST(pages_in_a_range, have_a_guard_page_between_all_chunks)
{
    pages<pages_options{.guard = true, .reserve_bytes = 8 * page_bytes}> source;
    chunk c[4];
    for (std::size_t i = 0; i < 4; ++i) {
        c[i] = source.try_take({page_bytes});
        ASSERT_NE(c[i].data, nullptr) << "four pages and four guards are eight pages";
        EXPECT_EQ(begin(c[i]), begin(c[0]) + 2 * i * page_bytes);
        EXPECT_DEATH(*static_cast<volatile std::byte*>(begin(c[i]) - 1) = std::byte{1}, "");
        EXPECT_DEATH(*static_cast<volatile std::byte*>(end(c[i])) = std::byte{1}, "");
    }
    EXPECT_EQ(source.try_take({page_bytes}).data, nullptr);
}

TEST(pages_in_a_range, keep_the_guard_page_of_a_chunk_when_neighbours_change)
{
    pages<pages_options{.guard = true, .reserve_bytes = mib}> source;
    chunk const a = source.try_take({page_bytes});
    chunk const b = source.try_take({3 * page_bytes});
    chunk const c = source.try_take({page_bytes});
    source.give(b);
    chunk const small = source.try_take({page_bytes});
    EXPECT_EQ(small.data, b.data);
    chunk const beyond = source.try_take({2 * page_bytes});
    EXPECT_GT(begin(beyond), end(c)) << "one page and its guard are left, not two";
    EXPECT_DEATH(*static_cast<volatile std::byte*>(end(a)) = std::byte{1}, "");
    EXPECT_DEATH(*static_cast<volatile std::byte*>(begin(c) - 1) = std::byte{1}, "");
    EXPECT_DEATH(*static_cast<volatile std::byte*>(end(small)) = std::byte{1}, "");
}

TEST(pages_in_a_range, leave_the_range_unchanged_when_no_huge_pages_are_reserved)
{
    if (has_huge_pages())
        GTEST_SKIP() << "huge pages are reserved on this machine";
    pages<pages_options{.huge = huge::hugetlb, .reserve_bytes = 2 * huge_page_bytes}> source;
    EXPECT_EQ(source.try_take({1}).data, nullptr);
    std::size_t const reserved = mapped_pages();
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(source.try_take({1}).data, nullptr);
        EXPECT_TRUE(says(source.last_failure(), "huge pages")) << "the range is not used up";
    }
    EXPECT_EQ(mapped_pages(), reserved);
}

TEST(pages_in_a_range, follow_each_other_without_a_gap_in_a_new_range)
{
    pages<pages_options{.reserve_bytes = 64 * mib}> source;
    chunk last = source.try_take({mib});
    for (std::size_t i = 1; i < 64; ++i) {
        chunk const next = source.try_take({mib});
        ASSERT_NE(next.data, nullptr) << i;
        EXPECT_EQ(begin(next), end(last)) << i;
        *begin(next) = std::byte{1};
        last = next;
    }
}

TEST(pages_in_a_range, fail_when_the_range_is_full_until_a_place_is_free)
{
    pages<pages_options{.reserve_bytes = 4 * page_bytes}> source;
    EXPECT_EQ(source.try_take({5 * page_bytes}).data, nullptr) << "larger than the range";
    chunk const c = source.try_take({4 * page_bytes});
    ASSERT_NE(c.data, nullptr);
    EXPECT_EQ(source.try_take({1}).data, nullptr);
    EXPECT_EQ(source.last_error(), ENOMEM);
    EXPECT_TRUE(says(source.last_failure(), "reserve_bytes")) << source.last_failure();
    source.give(c);
    EXPECT_EQ(source.try_take({4 * page_bytes}).data, c.data);
}

TEST(pages_in_a_range, fill_the_whole_range_with_aligned_chunks)
{
    pages<pages_options{.reserve_bytes = 16 * 64 * 1024}> source;
    for (int i = 0; i < 16; ++i)
        EXPECT_NE(source.try_take({64 * 1024, 64 * 1024}).data, nullptr) << i;
    EXPECT_EQ(source.try_take({1}).data, nullptr);
}

TEST(pages_in_a_range, honour_an_alignment_that_is_requested_later)
{
    pages<pages_options{.reserve_bytes = 8 * mib}> source;
    chunk const small = source.try_take({page_bytes});
    chunk const aligned = source.try_take({page_bytes, 2 * mib});
    ASSERT_NE(aligned.data, nullptr);
    EXPECT_TRUE(is_aligned(aligned, 2 * mib));
    EXPECT_EQ(begin(source.try_take({page_bytes})), end(small)) << "the gap is used";
    EXPECT_EQ(source.try_take({page_bytes, gib * 4096}).data, nullptr);
}

TEST(pages_in_a_range, return_to_the_system_and_are_zeroed_when_reused)
{
    pages<pages_options{.reserve_bytes = gib}> source;
    chunk const below = source.try_take({mib});
    chunk const c = source.try_take({mib});
    chunk const above = source.try_take({mib});
    for (chunk const each : {below, c, above})
        std::memset(each.data, 0xa5, each.bytes);
    source.give(c);
    EXPECT_EQ(resident_pages(begin(c), c.bytes), 0U);
    EXPECT_DEATH(*static_cast<volatile std::byte*>(begin(c)) = std::byte{1}, "");
    EXPECT_EQ(resident_pages(begin(below), mib) + resident_pages(begin(above), mib),
              2 * mib / page_bytes);

    chunk const again = source.try_take({mib});
    ASSERT_EQ(again.data, c.data) << "the lowest place that fits";
    for (std::byte* p = begin(again); p != end(again); ++p)
        ASSERT_EQ(*p, std::byte{});
}

TEST(pages_in_a_range, are_unmapped_together_with_the_range)
{
    std::size_t const before = mapped_pages();
    std::byte* place = nullptr;
    {
        pages<pages_options{.guard = true, .reserve_bytes = gib}> source;
        EXPECT_EQ(mapped_pages(), before) << "nothing is reserved before the first take";
        place = begin(source.try_take({mib}));
        EXPECT_GE(mapped_pages() - before, gib / page_bytes);
        EXPECT_TRUE(is_mapped(place));
    }
    EXPECT_EQ(mapped_pages(), before);
    EXPECT_FALSE(is_mapped(place));
}

TEST(pages_in_a_range, fail_for_a_range_beyond_the_address_space)
{
    pages<pages_options{.reserve_bytes = SIZE_MAX}> absurd;
    EXPECT_EQ(absurd.try_take({1}).data, nullptr);
    EXPECT_TRUE(says(absurd.last_failure(), "reserve_bytes")) << absurd.last_failure();
    pages<pages_options{.reserve_bytes = std::size_t{1} << 56}> large;
    EXPECT_EQ(large.try_take({1}).data, nullptr);
    EXPECT_TRUE(says(large.last_failure(), "address space")) << large.last_failure();
}

TEST(pages_in_a_range, move_with_the_range_and_leave_an_empty_source)
{
    pages<pages_options{.reserve_bytes = 4 * page_bytes}> source;
    chunk const c = source.try_take({page_bytes});
    *begin(c) = std::byte{7};
    pages<pages_options{.reserve_bytes = 4 * page_bytes}> moved = std::move(source);
    EXPECT_EQ(*begin(c), std::byte{7});
    EXPECT_EQ(begin(moved.try_take({page_bytes})), end(c));

    chunk const other = source.try_take({4 * page_bytes});
    ASSERT_NE(other.data, nullptr) << "a range of its own";
    EXPECT_EQ(source.try_take({1}).data, nullptr);
    moved = std::move(source);
    EXPECT_FALSE(is_mapped(c.data)) << "the range that was assigned to is given back";
    EXPECT_STRNE(moved.last_failure(), "");
    EXPECT_STREQ(source.last_failure(), "");
    moved.give(other);
    EXPECT_EQ(moved.try_take({4 * page_bytes}).data, other.data);
}

constinit pages<pages_options{.reserve_bytes = mib}> before_main;

TEST(pages_in_a_range, can_be_a_constant_initialised_global)
{
    EXPECT_NE(before_main.try_take({1}).data, nullptr);
}

} // namespace
