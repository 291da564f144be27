#include <mallard/arena.hpp>
#include <mallard/persist/shared_memory.hpp>

#include "../support/child.hpp"
#include "../support/segments.hpp"
#include "../support/threads.hpp"
#include "pages.hpp"

#include <array>
#include <fstream>
#include <set>
#include <type_traits>

#include <sys/stat.h>

namespace {

using namespace mallard::testing;
using mallard::huge_page_bytes;
using mallard::page_bytes;
using mallard::shared_memory;

static_assert(mallard::block_allocator<shared_memory> && mallard::shareable<shared_memory>);
static_assert(!std::is_copy_constructible_v<shared_memory>);
static_assert(std::is_nothrow_move_constructible_v<shared_memory>);

constexpr std::size_t header_bytes = sizeof(mallard::segment_header);

struct pair {
    int first = 1;
    int second = 2;
};
struct another_pair {
    int first = 1;
    int second = 2;
};

testing::AssertionResult is_refused(const shared_memory& s, int error, std::string_view words)
{
    if (!s && s.last_error() == error && says(s.last_failure(), words))
        return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << bool(s) << ", errno " << s.last_error() << ": " << s.last_failure();
}

TEST(shared_memory, is_created_once_and_opened_by_name)
{
    segment_name const name("");
    auto const made = required(shared_memory::create(name, 1));
    EXPECT_EQ(made.bytes(), page_bytes);
    EXPECT_TRUE(is_refused(shared_memory::create(name, 1), EEXIST, "remove it first"));
    auto const again = required(shared_memory::open(name));
    EXPECT_EQ(again.bytes(), page_bytes);
    EXPECT_EQ(required(shared_memory::open("/" + std::string(std::string_view(name)))).bytes(),
              page_bytes);
    EXPECT_EQ(required(shared_memory::open_or_create(name, 100 * page_bytes)).bytes(), page_bytes)
        << "as large as it is";
    struct stat s{};
    ASSERT_EQ(::stat(name.path().c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777, 0600U) << "not owned";
}

TEST(shared_memory, has_the_same_contents_at_two_addresses)
{
    auto a = required(shared_memory::anonymous(page_bytes));
    auto b = required(shared_memory::attach(a.descriptor()));
    auto* const p = a.root<pair>();
    auto* const q = b.root<pair>();
    ASSERT_NE(p, q);
    p->first = 7;
    EXPECT_EQ(q->first, 7);
    EXPECT_EQ(q->second, 2) << "not constructed again";
    EXPECT_TRUE(a.owns(p) && b.owns(q) && !a.owns(q) && !b.owns(p));
}

TEST(shared_memory, has_no_room_without_a_segment)
{
    shared_memory none;
    EXPECT_FALSE(none);
    EXPECT_EQ(none.bytes(), 0U);
    EXPECT_EQ(none.try_allocate({1}), nullptr);
    EXPECT_THROW(static_cast<void>(none.allocate({0})), std::bad_alloc);
    EXPECT_EQ(none.root<pair>(), nullptr);
    EXPECT_FALSE(none.owns(&none));
    EXPECT_EQ(none.stats(), mallard::statistics{});
}

TEST(shared_memory, lives_until_it_is_removed_and_unmapped_by_all)
{
    segment_name const name("");
    {
        auto made = required(shared_memory::create(name, 1));
        made.root<pair>()->first = 7;
    }
    auto kept = required(shared_memory::open(name));
    EXPECT_EQ(kept.root<pair>()->first, 7);
    EXPECT_FALSE(shared_memory::remove(name));
    EXPECT_TRUE(is_refused(shared_memory::open(name), ENOENT, "create it"));
    EXPECT_EQ(shared_memory::remove(name).error, ENOENT);
    kept.root<pair>()->second = 8;
    auto const fresh = required(shared_memory::create(name, 1));
    EXPECT_EQ(kept.root<pair>()->second, 8) << "the new segment is another one";
}

TEST(shared_memory, rejects_invalid_names_and_sizes)
{
    std::string const long_name(256, 'x');
    for (std::string_view const name :
         {"", "/", "a/b", "//a", ".", "..", "/..", long_name.c_str()}) {
        EXPECT_TRUE(is_refused(shared_memory::create(name, 1), EINVAL, "a name")) << name;
        EXPECT_TRUE(is_refused(shared_memory::open(name), EINVAL, "a name")) << name;
        EXPECT_EQ(shared_memory::remove(name).error, EINVAL) << name;
    }
    EXPECT_TRUE(is_refused(shared_memory::open(std::string_view("a\0b", 3)), EINVAL, "a name"));
    segment_name const name("");
    EXPECT_TRUE(is_refused(shared_memory::create(name, 0), EINVAL, "at least one byte"));
    EXPECT_TRUE(is_refused(shared_memory::anonymous(0), EINVAL, "at least one byte"));
    for (std::size_t const bytes : {SIZE_MAX, SIZE_MAX / 2, std::size_t{1} << 48}) {
        EXPECT_TRUE(is_refused(shared_memory::create(name, bytes), ENOMEM, "address space"));
        EXPECT_TRUE(is_refused(shared_memory::anonymous(bytes), ENOMEM, "address space"));
    }
    EXPECT_TRUE(is_refused(shared_memory::open(name), ENOENT, "create it")) << "nothing stays";
}

TEST(shared_memory, allocates_aligned_zeroed_blocks_until_it_is_full)
{
    auto segment = required(shared_memory::anonymous(8 << 20));
    std::byte* last = nullptr;
    for (std::size_t align = 1; align <= huge_page_bytes; align *= 2) {
        auto* const p = static_cast<std::byte*>(segment.allocate({100, align}));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % align, 0U);
        EXPECT_GE(p, last);
        EXPECT_EQ(std::count(p, p + 100, std::byte{}), 100);
        std::fill_n(p, 100, std::byte{1});
        last = p + 100;
    }
    EXPECT_EQ(segment.try_allocate({1, 2 * huge_page_bytes}), nullptr) << "not in each process";
    EXPECT_EQ(segment.try_allocate({SIZE_MAX, 64}), nullptr);
    EXPECT_EQ(segment.try_allocate({segment.bytes()}), nullptr);
    auto const s = segment.stats();
    EXPECT_EQ(s.bytes_live + s.bytes_idle + header_bytes, segment.bytes());
    void* const rest = segment.allocate({s.bytes_idle, 1});
    EXPECT_EQ(segment.try_allocate({0, 1}), nullptr);
    segment.deallocate(rest, {s.bytes_idle, 1});
    EXPECT_EQ(segment.allocate({1, 1}), rest);
    EXPECT_NE(segment.try_allocate({0, 1}), segment.try_allocate({0, 1})) << "of their own";
}

TEST(shared_memory, frees_the_last_block_and_no_other)
{
    auto segment = required(shared_memory::anonymous(page_bytes));
    void* const a = segment.allocate({10});
    void* const b = segment.allocate({20});
    segment.deallocate(a, {10});
    EXPECT_GT(segment.allocate({1}), b);
    void* const c = segment.allocate({30});
    segment.deallocate(c, {30});
    EXPECT_EQ(segment.allocate({30}), c);
}

TEST(shared_memory, can_be_the_source_of_an_arena)
{
    mallard::arena<shared_memory> blocks(required(shared_memory::anonymous(1 << 20)));
    EXPECT_TRUE(blocks.upstream().owns(blocks.make_array<int>(1000).data()));
    EXPECT_EQ(blocks.try_allocate({1 << 20}), nullptr);
}

TEST(shared_memory, never_gives_two_threads_overlapping_blocks)
{
    auto segment = required(shared_memory::anonymous(1 << 22));
    in_threads(4, [&](std::size_t me) {
        for (std::size_t i = 0; i < rounds(20'000); ++i) {
            std::size_t const count = i % 5 + 1;
            auto* const p = static_cast<std::size_t*>(segment.allocate({count * 8, 8}));
            std::fill_n(p, count, me + 1);
            require(std::count(p, p + count, me + 1) == std::ptrdiff_t(count),
                    "a block has one owner");
            if (i % 3 == 0) {
                std::fill_n(p, count, std::size_t{0});
                segment.deallocate(p, {count * 8, 8});
            }
        }
    });
}

TEST(shared_memory, can_be_moved_and_leaves_an_empty_object)
{
    auto segment = required(shared_memory::anonymous(page_bytes));
    auto* const p = segment.root<pair>();
    shared_memory moved = std::move(segment);
    EXPECT_FALSE(segment);
    EXPECT_EQ(segment.try_allocate({1}), nullptr);
    EXPECT_EQ(moved.root<pair>(), p);
    shared_memory other = required(shared_memory::anonymous(page_bytes));
    auto* const gone = other.root<pair>();
    other = std::move(moved);
    EXPECT_EQ(other.root<pair>(), p);
    EXPECT_FALSE(
        is_mapped(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(gone) & -4096)));
    auto& same = other; // a compiler warns of `other = std::move(other)`
    other = std::move(same);
    EXPECT_EQ(other.root<pair>(), p);
}

TEST(shared_memory, leaves_nothing_mapped_and_no_descriptor_open)
{
    std::size_t const before = mapped_pages();
    int const next = ::dup(0);
    ::close(next);
    for (int i = 0; i < 3; ++i) {
        segment_name const name("");
        auto const a = required(shared_memory::create(name, 1 << 20));
        auto const b = required(shared_memory::open(name));
        EXPECT_FALSE(shared_memory::create(name, 1));
        EXPECT_FALSE(shared_memory::attach(::fileno(stdin)));
        EXPECT_FALSE(shared_memory::anonymous(0));
    }
    EXPECT_EQ(mapped_pages(), before);
    EXPECT_EQ(::dup(0), next);
    ::close(next);
}

TEST(a_root, cannot_be_accessed_as_another_type)
{
    auto segment = required(shared_memory::anonymous(page_bytes));
    ASSERT_NE(segment.root<pair>(), nullptr);
    EXPECT_EQ(segment.root<another_pair>(), nullptr) << "as large and aligned alike";
    EXPECT_EQ(segment.last_error(), EINVAL);
    EXPECT_TRUE(says(segment.last_failure(), "another type")) << segment.last_failure();
    EXPECT_EQ((segment.root<std::array<char, sizeof(pair)>>()), nullptr);
}

TEST(a_root, fails_without_room_and_can_then_have_another_type)
{
    auto segment = required(shared_memory::anonymous(page_bytes));
    EXPECT_EQ((segment.root<std::array<char, page_bytes>>()), nullptr);
    EXPECT_EQ(segment.last_error(), ENOMEM);
    EXPECT_TRUE(says(segment.last_failure(), "larger"));
    EXPECT_NE(segment.root<pair>(), nullptr);
}

struct fails_twice {
    explicit fails_twice(int& count) : number(++count)
    {
        if (count < 3)
            throw count;
    }
    int number;
};

TEST(a_root, is_constructed_by_the_next_caller_after_its_constructor_throws)
{
    auto segment = required(shared_memory::anonymous(page_bytes));
    int count = 0;
    EXPECT_THROW(segment.root<fails_twice>(count), int);
    std::size_t const live = segment.stats().bytes_live;
    EXPECT_THROW(segment.root<fails_twice>(count), int);
    EXPECT_EQ(segment.root<fails_twice>(count)->number, 3);
    EXPECT_EQ(segment.stats().bytes_live, live) << "in the same place";
}

TEST(a_root, is_constructed_once_by_racing_threads)
{
    struct slow {
        slow(std::atomic<int>& count, const std::atomic<int>& callers)
        {
            wait_until([&] { return callers == 4; }, "all threads call root");
            ++count;
        }
        int value = 5;
    };
    for (int round = 0; round < 20; ++round) {
        auto segment = required(shared_memory::anonymous(page_bytes));
        std::atomic<int> count = 0, callers = 0;
        in_threads(4, [&](std::size_t) {
            ++callers;
            require(segment.root<slow>(count, callers)->value == 5, "it is");
        });
        EXPECT_EQ(count, 1);
    }
}

TEST(a_layout_hash, distinguishes_types)
{
    std::set<std::uint64_t> const all{mallard::layout_hash<pair>,
                                      mallard::layout_hash<another_pair>,
                                      mallard::layout_hash<int>,
                                      mallard::layout_hash<unsigned>,
                                      mallard::layout_hash<std::array<int, 2>>,
                                      mallard::layout_hash<std::array<int, 3>>};
    EXPECT_EQ(all.size(), 6U);
}

} // namespace
