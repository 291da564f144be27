#include <mallard/persist/file_arena.hpp>

#include "../support/child.hpp"
#include "../support/list_file.hpp"

#include <gtest/gtest.h>

#include <vector>

#include <fcntl.h>

namespace {

using namespace mallard::testing;
using mallard::file_arena;

TEST(file_arena, has_no_room_and_no_root_before_open)
{
    file_arena file;
    EXPECT_FALSE(file.is_open());
    EXPECT_EQ(file.try_allocate({1}), nullptr);
    EXPECT_THROW(static_cast<void>(file.allocate({1})), std::bad_alloc);
    EXPECT_EQ(file.root<int>(), nullptr);
    EXPECT_EQ(file.root_or_make<int>(), nullptr);
    int elsewhere = 0;
    EXPECT_FALSE(file.set_root(&elsewhere));
    EXPECT_FALSE(file.commit());
    EXPECT_FALSE(file.verify());
    EXPECT_TRUE(says(file, "no file is open"));
    file.reset();
    file.close();
    EXPECT_EQ(file.stats(), mallard::file_statistics{});
}

TEST(file_arena, reads_the_last_commit_and_allocates_after_it)
{
    with_list const given;
    file_arena file;
    ASSERT_TRUE(file.open(given.path.c_str()));
    EXPECT_FALSE(file.relocated());
    list* const keys = file.root<list>();
    ASSERT_NE(keys, nullptr);
    EXPECT_EQ(keys->sum(), 6);
    auto* const last = reinterpret_cast<std::byte*>(keys->first.get() + 1);
    EXPECT_EQ(static_cast<std::byte*>(file.allocate({1, 1})), last) << "the cursor is where it was";
    keys->push(file, 4);
    ASSERT_TRUE(file.commit());
    file.close();
    EXPECT_EQ(given.sum(), 10);
}

TEST(file_arena, loses_uncommitted_changes)
{
    with_list const given;
    std::string const before = bytes_of(given.path);
    file_arena file;
    ASSERT_TRUE(file.open(given.path.c_str()));
    file.root<list>()->first->key = 100;
    file.root<list>()->push(file, 1000);
    file.reset();
    EXPECT_TRUE(bytes_of(given.path) == before) << "nothing reaches the file before commit";
    ASSERT_TRUE(file.open(given.path.c_str())) << "closes it first";
    EXPECT_EQ(file.root<list>()->sum(), 6);
}

/// Changes the file in a new process. A test below starts this program again, as a child, to run
/// this function.
void extend(const char* path)
{
    file_arena file;
    ASSERT_TRUE(file.open(path)) << file.last_failure();
    ASSERT_FALSE(file.relocated());
    list* const keys = file.root<list>();
    ASSERT_EQ(keys->sum(), 6);
    keys->push(file, 10);
    ASSERT_TRUE(file.commit()) << file.last_failure();
}

TEST(file_arena, can_be_opened_and_extended_by_another_program)
{
    constexpr const char* name_of_file = "MALLARD_TEST_FILE";
    if (char const* const path = std::getenv(name_of_file))
        return extend(path);
    with_list const given;
    EXPECT_EQ(in_a_child([&] {
                  ::setenv(name_of_file, given.path.c_str(), 1);
                  ::execl("/proc/self/exe", "again", "--gtest_brief=1",
                          "--gtest_filter=file_arena.can_be_opened_and_extended_by_another_program",
                          nullptr);
              }),
              "fine");
    EXPECT_EQ(given.sum(), 16);
}

TEST(file_arena, aligns_blocks_and_frees_the_last_one)
{
    temporary_folder const folder;
    file_arena file;
    ASSERT_TRUE(file.open((folder / "file").c_str(), {.max_bytes = 8 << 20}));
    for (std::size_t align = 1; align <= (2 << 20); align *= 2)
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.allocate({1, align})) % align, 0U);
    void* const a = file.allocate({100});
    void* const b = file.allocate({0});
    void* const c = file.allocate({0});
    EXPECT_NE(b, c);
    file.deallocate(c, {0});
    EXPECT_EQ(file.allocate({0}), c);
    std::size_t const used = file.stats().bytes_used;
    file.deallocate(a, {100});
    EXPECT_EQ(file.stats().bytes_used, used) << "not the last";
    EXPECT_EQ(file.copy("characters"), "characters");
    EXPECT_EQ(file.make_array<int>(3)[2], 0);
}

TEST(file_arena, allocates_up_to_max_bytes_which_may_be_higher_next_time)
{
    temporary_folder const folder;
    std::string const path = folder / "file";
    file_arena file;
    ASSERT_TRUE(file.open(path.c_str(), {.max_bytes = 100'000}));
    EXPECT_EQ(file.stats().bytes_max, 102'400U) << "whole pages";
    ASSERT_NE(file.try_allocate({102'400 - 64, 1}), nullptr);
    EXPECT_EQ(file.try_allocate({1, 1}), nullptr);
    EXPECT_EQ(file.try_allocate({SIZE_MAX}), nullptr);
    EXPECT_EQ(file.try_make<int>(), nullptr);
    EXPECT_EQ(file.root_or_make<int>(), nullptr);
    EXPECT_TRUE(says(file, "max_bytes"));
    ASSERT_TRUE(file.commit());
    ASSERT_TRUE(file.open(path.c_str(), {.max_bytes = 1}));
    EXPECT_EQ(file.try_allocate({1, 1}), nullptr) << "the file is unchanged";
    ASSERT_TRUE(file.open(path.c_str(), {.max_bytes = 200'000}));
    EXPECT_NE(file.try_allocate({90'000}), nullptr);
}

TEST(file_arena, rejects_a_root_of_another_type_and_keeps_the_old_root)
{
    with_list const given;
    file_arena file;
    ASSERT_TRUE(file.open(given.path.c_str()));
    EXPECT_EQ(file.root<list::node>(), nullptr);
    EXPECT_TRUE(says(file, "another type"));
    EXPECT_EQ(file.root_or_make<long>(), nullptr);
    EXPECT_FALSE(file.set_root(&file.make<long>(1)));
    EXPECT_TRUE(says(file, "another type"));
    EXPECT_EQ(file.root<list>()->sum(), 6);
    file.reset();
    EXPECT_EQ(file.root<list>(), nullptr);
    EXPECT_TRUE(says(file, "no root yet"));
    EXPECT_EQ(*file.root_or_make<long>(5), 5);
    int elsewhere = 0;
    file.reset();
    EXPECT_FALSE(file.set_root(&elsewhere));
    EXPECT_TRUE(says(file, "not in the file"));
    static_assert(mallard::layout_hash<int> != mallard::layout_hash<unsigned>);
}

TEST(file_arena, shrinks_the_file_by_a_commit_after_reset)
{
    temporary_folder const folder;
    std::string const path = folder / "file";
    file_arena file;
    ASSERT_TRUE(file.open(path.c_str()));
    std::memset(file.allocate({9 << 20}), 1, 9 << 20); // three groups, five extents of pages
    ASSERT_TRUE(file.commit());
    EXPECT_GT(std::filesystem::file_size(path), std::uintmax_t{9 << 20});
    EXPECT_TRUE(file.verify());
    file.reset();
    auto* const all = static_cast<char*>(file.allocate({9 << 20}));
    EXPECT_EQ(all[(9 << 20) - 1], 1) << "memory is as it was";
    file.reset();
    ASSERT_TRUE(file.commit());
    EXPECT_EQ(std::filesystem::file_size(path), 4U * 4096);
    EXPECT_EQ(file.allocate({9 << 20}), all);
    std::memset(all, 2, 9 << 20);
    ASSERT_TRUE(file.commit());
    EXPECT_TRUE(file.verify());
}

/// Returns the number of lines of /proc/self/maps.
std::size_t mappings()
{
    std::ifstream maps("/proc/self/maps");
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

/// Returns the number of anonymous pages, read from /proc/self/pagemap.
std::size_t copied_pages(const void* from, std::size_t pages)
{
    std::vector<std::uint64_t> entries(pages);
    int const map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    auto const at = reinterpret_cast<std::uintptr_t>(from) / 4096 * sizeof entries[0];
    EXPECT_GT(::pread(map, entries.data(), pages * sizeof entries[0], static_cast<off_t>(at)), 0);
    ::close(map);
    return static_cast<std::size_t>(std::count_if(entries.begin(), entries.end(), [](auto entry) {
        return (entry >> 63) != 0 && (entry >> 61 & 1) == 0;
    }));
}

TEST(file_arena, returns_memory_to_the_system_at_each_commit)
{
    temporary_folder const folder;
    file_arena file;
    ASSERT_TRUE(file.open((folder / "file").c_str()));
    auto* const block = static_cast<char*>(file.allocate({1 << 20}));
    std::memset(block, 1, 1 << 20);
    ASSERT_TRUE(file.commit());
    EXPECT_EQ(copied_pages(&file.blocks(), 256), 0U);
    block[5000] = block[500'000] = 2;
    EXPECT_EQ(copied_pages(&file.blocks(), 256), 2U);
    ASSERT_TRUE(file.commit());
    EXPECT_EQ(copied_pages(&file.blocks(), 256), 0U);
    EXPECT_EQ(block[5000] + block[500'000] + block[1], 5);
}

TEST(file_arena, needs_few_mappings_however_often_it_grows)
{
    temporary_folder const folder;
    file_arena file;
    ASSERT_TRUE(file.open((folder / "file").c_str(), {.sync = false}));
    std::size_t const before = mappings();
    for (int i = 0; i < 1000; ++i) {
        std::memset(file.allocate({4000}), i, 4000);
        ASSERT_TRUE(file.commit());
    }
    EXPECT_LE(mappings(), before + 4);
    EXPECT_EQ(file.stats().commits, 1000U);
    EXPECT_TRUE(file.verify());
}

TEST(file_arena, writes_nothing_in_a_commit_without_changes)
{
    with_list const given;
    file_arena file;
    ASSERT_TRUE(file.open(given.path.c_str()));
    std::string const before = bytes_of(given.path);
    ASSERT_TRUE(file.commit());
    EXPECT_TRUE(bytes_of(given.path) == before);
    EXPECT_EQ(file.stats().commits, 1U);
    EXPECT_EQ(file.stats().bytes_committed, 4096U);
}

TEST(file_arena, keeps_the_file_open_when_moved)
{
    with_list const given;
    file_arena file;
    ASSERT_TRUE(file.open(given.path.c_str()));
    list* const keys = file.root<list>();
    file_arena moved = std::move(file);
    EXPECT_FALSE(file.is_open());
    EXPECT_EQ(file.try_allocate({1}), nullptr);
    EXPECT_EQ(moved.root<list>(), keys);
    keys->push(moved, 4);
    file = std::move(moved);
    ASSERT_TRUE(file.commit());
    file = file_arena();
    EXPECT_EQ(given.sum(), 10);
}

} // namespace
