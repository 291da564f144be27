// Tests pages of one NUMA node, and pages that are locked in memory.
#include "../support/child.hpp"
#include "../support/refused_call.hpp"
#include "pages.hpp"

#include <cstring>

#include <linux/mempolicy.h>
#include <sys/syscall.h>

namespace {

using namespace mallard::testing;
using mallard::chunk;
using mallard::huge;
using mallard::numa;
using mallard::page_bytes;
using mallard::pages;
using mallard::pages_options;

constexpr pages_options on_node_0{.numa = numa::prefer(0)};
constexpr pages_options only_node_0{.numa = numa::bind(0)};
constexpr pages_options on_no_node{.numa = numa::prefer(1023)};
constexpr pages_options only_no_node{.numa = numa::bind(1023)};
constexpr pages_options locked{.locked = true};

struct policy {
    int mode = -1;
    unsigned long nodes[16] = {};
    explicit policy(const void* page)
    {
        if (::syscall(SYS_get_mempolicy, &mode, nodes, 1024, page, MPOL_F_ADDR) != 0)
            mode = -1;
    }
};

/// Returns the value in KiB of the line `key` in /proc/self/smaps for the mapping of `page`, or -1
/// if there is none.
long kib_of_mapping(const void* page, const char* key)
{
    auto const address = reinterpret_cast<std::uintptr_t>(page);
    std::FILE* const file = std::fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false;
    long kib = -1;
    while (kib < 0 && file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
        unsigned long from = 0;
        unsigned long to = 0;
        if (std::sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from <= address && address < to;
        else if (inside && std::strncmp(line, key, std::strlen(key)) == 0)
            kib = std::atol(line + std::strlen(key));
    }
    if (file != nullptr)
        std::fclose(file);
    return kib;
}

bool is_locked(chunk c)
{
    return kib_of_mapping(c.data, "Locked:") > 0;
}

TEST(pages_of_a_numa_node, can_be_preferred_or_bound)
{
    pages<on_node_0> preferring;
    chunk const c = preferring.try_take({mib});
    if (preferring.last_error() == ENOSYS || preferring.last_error() == EPERM)
        GTEST_SKIP() << preferring.last_failure();
    pages<only_node_0> bound;
    chunk const d = bound.try_take({mib});
    ASSERT_NE(d.data, nullptr) << bound.last_failure();
    EXPECT_EQ(preferring.last_error(), 0) << preferring.last_failure();
    EXPECT_EQ(policy(c.data).mode, MPOL_PREFERRED);
    EXPECT_EQ(policy(d.data).mode, MPOL_BIND);
    EXPECT_EQ(policy(d.data).nodes[0], 1U);
    EXPECT_EQ(policy(end(d) - 1).mode, MPOL_BIND);
    std::memset(d.data, 1, d.bytes);
    preferring.give(c);
    bound.give(d);
}

TEST(pages_of_a_numa_node, are_bound_to_no_node_after_a_chunk_in_a_range_is_freed)
{
    pages<pages_options{.numa = numa::bind(0), .guard = true, .reserve_bytes = mib}> source;
    chunk const c = source.try_take({page_bytes});
    if (c.data == nullptr)
        GTEST_SKIP() << source.last_failure();
    EXPECT_EQ(policy(c.data).mode, MPOL_BIND);
    EXPECT_EQ(policy(end(c)).mode, MPOL_DEFAULT) << "the guard page has no node";
    source.give(c);
    EXPECT_EQ(policy(c.data).mode, MPOL_DEFAULT);
    EXPECT_EQ(source.try_take({page_bytes}).data, c.data);
}

TEST(pages_of_a_numa_node, a_missing_numa_node_is_replaced_if_preferred_and_fails_if_bound)
{
    pages<on_no_node> preferring;
    chunk const c = preferring.try_take({mib});
    ASSERT_NE(c.data, nullptr);
    EXPECT_NE(preferring.last_error(), 0) << "last_failure names refused advice";
    EXPECT_TRUE(says(preferring.last_failure(), "NUMA node") ||
                says(preferring.last_failure(), "mbind"))
        << preferring.last_failure();
    std::memset(c.data, 1, c.bytes);
    preferring.give(c);

    pages<only_no_node> bound;
    std::size_t const before = mapped_pages();
    EXPECT_EQ(bound.try_take({mib}).data, nullptr);
    EXPECT_EQ(mapped_pages(), before);
    EXPECT_NE(bound.last_error(), 0);
}

TEST(pages_of_a_numa_node, fail_for_a_node_number_that_no_kernel_supports)
{
    pages<pages_options{.numa = numa::bind(1024)}> beyond;
    EXPECT_EQ(beyond.try_take({1}).data, nullptr);
    EXPECT_EQ(beyond.last_error(), EINVAL);
    pages<pages_options{.numa = numa::bind(-1)}> below;
    EXPECT_EQ(below.try_take({1}).data, nullptr);
    EXPECT_EQ(below.last_error(), EINVAL);
}

/// Returns whether the options `Preferring` and `Bound` behave as documented when mbind fails with
/// `error`.
template <pages_options Preferring, pages_options Bound>
bool tells_refused_mbind(int error, const char* words)
{
    if (!refuse_call(SYS_mbind, error))
        return true; // seccomp is not available here, so there is nothing to test
    pages<Preferring> preferring;
    pages<Bound> bound;
    chunk const c = preferring.try_take({mib});
    return c.data != nullptr && preferring.last_error() == error &&
           says(preferring.last_failure(), words) && bound.try_take({mib}).data == nullptr &&
           bound.last_error() == error && says(bound.last_failure(), words);
}

TEST(pages_of_a_numa_node, explain_a_failure_on_a_kernel_or_sandbox_without_numa)
{
    EXPECT_EQ(in_a_child([] {
                  require(tells_refused_mbind<on_node_0, only_node_0>(ENOSYS, "no NUMA nodes"),
                          "a kernel without nodes is told");
              }),
              "fine");
    EXPECT_EQ(in_a_child([] {
                  require(tells_refused_mbind<on_node_0, only_node_0>(EPERM, "CAP_SYS_NICE"),
                          "a sandbox is told");
              }),
              "fine");
}

TEST(pages_that_are_locked, are_locked_when_touched_or_all_immediately)
{
    pages<locked> source;
    chunk const c = source.try_take({16 * page_bytes});
    if (c.data == nullptr)
        GTEST_SKIP() << source.last_failure();
    EXPECT_EQ(resident_pages(begin(c), c.bytes), 0U) << "no page is touched before its use";
    *begin(c) = std::byte{1};
    EXPECT_TRUE(is_locked(c));
    EXPECT_NE(::madvise(c.data, c.bytes, MADV_DONTNEED), 0) << "the kernel keeps locked pages";
    source.give(c);
    EXPECT_FALSE(is_mapped(c.data));

    pages<pages_options{.populate = true, .locked = true}> at_once;
    chunk const d = at_once.try_take({16 * page_bytes});
    ASSERT_NE(d.data, nullptr) << at_once.last_failure();
    EXPECT_EQ(resident_pages(begin(d), d.bytes), 16U);
    EXPECT_TRUE(is_locked(d));
    at_once.give(d);
}

TEST(pages_that_are_locked, have_guard_pages_that_are_not_locked)
{
    pages<pages_options{.guard = true, .locked = true}> source;
    chunk const c = source.try_take({page_bytes});
    if (c.data == nullptr)
        GTEST_SKIP() << source.last_failure();
    *begin(c) = *(end(c) - 1) = std::byte{1};
    EXPECT_TRUE(is_locked(c));
    EXPECT_LE(kib_of_mapping(end(c), "Locked:"), 0);
    EXPECT_DEATH(*static_cast<volatile std::byte*>(begin(c) - 1) = std::byte{1}, "");
    EXPECT_DEATH(*static_cast<volatile std::byte*>(end(c)) = std::byte{1}, "");
    source.give(c);
}

TEST(pages_that_are_locked, are_unlocked_and_zeroed_when_a_range_reuses_them)
{
    pages<pages_options{.locked = true, .reserve_bytes = mib}> source;
    chunk const c = source.try_take({page_bytes});
    if (c.data == nullptr)
        GTEST_SKIP() << source.last_failure();
    *begin(c) = std::byte{1};
    source.give(c);
    EXPECT_FALSE(is_locked(c));
    chunk const again = source.try_take({page_bytes});
    ASSERT_EQ(again.data, c.data);
    EXPECT_EQ(*begin(again), std::byte{});
    *begin(again) = std::byte{1};
    EXPECT_TRUE(is_locked(again));
}

/// Runs as an unprivileged user, because the limit does not apply to root.
void take_locked_under_a_limit(std::size_t bytes, int error)
{
    limit(RLIMIT_MEMLOCK, bytes);
    if (::geteuid() == 0)
        require(::setresuid(65534, 65534, 65534) == 0, "root may become an unprivileged user");
    pages<pages_options{.guard = true, .locked = true}> source;
    pages<pages_options{.locked = true, .reserve_bytes = 4 * mib}> in_range;
    static_cast<void>(in_range.try_take({page_bytes})); // one of the two allowed pages
    std::size_t const before = mapped_pages();
    require(source.try_take({mib}).data == nullptr, "more than the limit is refused");
    require(mapped_pages() == before, "and nothing stays mapped");
    require(source.last_error() == error, "last_error is the error of the system");
    require(says(source.last_failure(), "ulimit -l"), "last_failure names the limit");
    require(in_range.try_take({mib}).data == nullptr, "in a range too");
    require(says(in_range.last_failure(), "ulimit -l"), "with the same line");
}

TEST(pages_that_are_locked, fail_beyond_the_limit_and_name_it)
{
    EXPECT_EQ(in_a_child([] { take_locked_under_a_limit(0, EPERM); }), "fine");
    EXPECT_EQ(in_a_child([] { take_locked_under_a_limit(2 * page_bytes, ENOMEM); }), "fine");
}

TEST(pages_that_are_locked, explain_a_failure_on_a_kernel_that_is_too_old)
{
    EXPECT_EQ(in_a_child([] {
                  if (!refuse_call(SYS_mlock2, ENOSYS))
                      return;
                  pages<locked> source;
                  require(source.try_take({1}).data == nullptr,
                          "without the lock there is no chunk");
                  require(says(source.last_failure(), "Linux 4.4"),
                          "last_failure names the kernel version");
              }),
              "fine");
}

TEST(pages_with_hugetlb, name_the_file_to_write_to_when_none_are_reserved)
{
    if (has_huge_pages())
        GTEST_SKIP() << "huge pages are reserved on this machine";
    pages<pages_options{.huge = huge::hugetlb, .numa = numa::bind(0), .locked = true}> source;
    EXPECT_EQ(source.try_take({1}).data, nullptr);
    EXPECT_TRUE(says(source.last_failure(), "nr_hugepages") ||
                says(source.last_failure(), "huge::madvise"))
        << source.last_failure();
}

} // namespace
