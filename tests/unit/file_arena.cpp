#include <mallard/file_arena.hpp>
#include <mallard/offset_ptr.hpp>

#include "../support/child.hpp"
#include "../support/files.hpp"

#include <gtest/gtest.h>

#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace {

using namespace mallard::testing;
using mallard::file_access;
using mallard::file_arena;
using mallard::file_options;

constexpr file_options reading{.access = file_access::read};
constexpr file_options moving{.max_bytes = 1 << 20, .relocate = true};

/// A list that can be anywhere.
struct list {
    struct node {
        int key;
        mallard::offset_ptr<node> next;
    };
    mallard::offset_ptr<node> first;

    void push(file_arena& file, int key) { first = &file.make<node>(key, first); }
    int sum() const
    {
        int result = 0;
        for (node* n = first.get(); n != nullptr; n = n->next.get())
            result += n->key;
        return result;
    }
};

/// A folder with one file, in which a list has the keys 1, 2 and 3.
struct with_list {
    temporary_folder folder;
    std::string path = folder / "list";

    with_list()
    {
        file_arena file;
        EXPECT_TRUE(file.open(path.c_str())) << file.last_refusal();
        list* const keys = file.root_or_make<list>();
        for (int key : {1, 2, 3})
            keys->push(file, key);
        EXPECT_TRUE(file.commit()) << file.last_refusal();
    }
    int sum() const
    {
        file_arena file;
        EXPECT_TRUE(file.open(path.c_str(), reading)) << file.last_refusal();
        list const* const keys = file.root<list>();
        return keys == nullptr ? -1 : keys->sum();
    }
};

TEST(file_arena, has_no_room_and_no_root_before_a_file_is_open)
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

TEST(file_arena, gives_back_what_was_committed_and_goes_on_behind_it)
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

TEST(file_arena, loses_what_was_not_committed)
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

/// In a process of its own, which the test below makes of this program.
void extend(const char* path)
{
    file_arena file;
    ASSERT_TRUE(file.open(path)) << file.last_refusal();
    ASSERT_FALSE(file.relocated());
    list* const keys = file.root<list>();
    ASSERT_EQ(keys->sum(), 6);
    keys->push(file, 10);
    ASSERT_TRUE(file.commit()) << file.last_refusal();
}

TEST(file_arena, is_opened_and_extended_by_another_program)
{
    constexpr const char* name_of_file = "MALLARD_TEST_FILE";
    if (char const* const path = std::getenv(name_of_file))
        return extend(path);
    with_list const given;
    EXPECT_EQ(in_a_child([&] {
                  ::setenv(name_of_file, given.path.c_str(), 1);
                  ::execl("/proc/self/exe", "again", "--gtest_brief=1",
                          "--gtest_filter=file_arena.is_opened_and_extended_by_another_program",
                          nullptr);
              }),
              "fine");
    EXPECT_EQ(given.sum(), 16);
}

TEST(file_arena, aligns_blocks_and_takes_back_the_last_one)
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

TEST(file_arena, gives_nothing_beyond_max_bytes_which_may_be_higher_next_time)
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
    EXPECT_EQ(file.try_allocate({1, 1}), nullptr) << "it has what it had and no more";
    ASSERT_TRUE(file.open(path.c_str(), {.max_bytes = 200'000}));
    EXPECT_NE(file.try_allocate({90'000}), nullptr);
}

TEST(file_arena, refuses_a_root_of_another_type_and_keeps_it)
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
    static_assert(mallard::type_mark<int>() != mallard::type_mark<unsigned>());
}

TEST(file_arena, becomes_small_again_by_a_commit_after_reset)
{
    temporary_folder const folder;
    std::string const path = folder / "file";
    file_arena file;
    ASSERT_TRUE(file.open(path.c_str()));
    std::memset(file.allocate({9 << 20}), 1, 9 << 20); // three groups: five extents of pages
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

/// Lines of /proc/self/maps.
std::size_t mappings()
{
    std::ifstream maps("/proc/self/maps");
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

/// Pages of anonymous memory, by pagemap.
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

TEST(file_arena, gives_memory_back_to_the_system_at_each_commit)
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

TEST(file_arena, does_nothing_in_a_commit_without_changes)
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

TEST(file_arena, moves_with_its_file)
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

// ---- relocation ----

TEST(a_relocated_file_arena, is_refused_unless_the_options_permit_it)
{
    with_list const given;
    file_arena file, other;
    ASSERT_TRUE(file.open(given.path.c_str(), reading));
    void* const home = &file.blocks();
    EXPECT_FALSE(other.open(given.path.c_str(), reading));
    EXPECT_EQ(other.last_error(), EEXIST);
    EXPECT_TRUE(says(other, "another mapping"));
    file.close();

    void* const taken =
        ::mmap(home, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_EQ(taken, home);
    EXPECT_FALSE(other.open(given.path.c_str()));
    ASSERT_TRUE(other.open(given.path.c_str(), moving)) << other.last_refusal();
    EXPECT_TRUE(other.relocated());
    EXPECT_NE(static_cast<void*>(&other.blocks()), home);
    list* const keys = other.root<list>();
    EXPECT_EQ(keys->sum(), 6);
    keys->push(other, 4);
    ASSERT_TRUE(other.commit());
    other.close();
    ::munmap(taken, 4096);
    ASSERT_TRUE(file.open(given.path.c_str(), moving)) << file.last_refusal();
    EXPECT_FALSE(file.relocated());
    EXPECT_EQ(file.root<list>()->sum(), 10);
}

// ---- readers and writers ----

TEST(readers_of_a_file_arena, are_many_and_have_no_room)
{
    with_list const given;
    file_arena first, second;
    ASSERT_TRUE(first.open(given.path.c_str(), reading));
    ASSERT_TRUE(second.open(given.path.c_str(), {.access = file_access::read, .relocate = true}));
    EXPECT_EQ(first.root<list>()->sum(), second.root<list>()->sum());
    EXPECT_EQ(first.try_allocate({1}), nullptr);
    EXPECT_EQ(first.blocks().try_allocate({1}), nullptr);
    EXPECT_FALSE(first.commit());
    EXPECT_EQ(first.last_error(), EROFS);
    first.reset();
    EXPECT_TRUE(first.verify());
    EXPECT_NE(in_a_child([&] { first.root<list>()->first->key = 7; }), "fine");

    file_arena writer;
    EXPECT_FALSE(writer.open(given.path.c_str()));
    EXPECT_EQ(writer.last_error(), EWOULDBLOCK);
    EXPECT_TRUE(says(writer, "a writer must be alone")) << writer.last_refusal();
}

TEST(a_writer_of_a_file_arena, is_alone)
{
    with_list const given;
    file_arena writer;
    ASSERT_TRUE(writer.open(given.path.c_str()));
    EXPECT_EQ(in_a_child([&] {
                  file_arena other;
                  bool const fine = !other.open(given.path.c_str()) &&
                                    says(other, "a writer must be alone") &&
                                    !other.open(given.path.c_str(), reading) &&
                                    says(other, "open for writing elsewhere") && !other.is_open();
                  ::_exit(fine ? 0 : 1);
              }),
              "fine");
    writer.root<list>()->push(writer, 1);
    EXPECT_TRUE(writer.commit());
}

TEST(a_child_of_a_fork, uses_what_it_inherits_and_commits_nothing)
{
    with_list const given;
    file_arena file;
    ASSERT_TRUE(file.open(given.path.c_str()));
    EXPECT_EQ(in_a_child([&] {
                  file.root<list>()->push(file, 100);
                  bool const fine = file.root<list>()->sum() == 106 && !file.commit() &&
                                    says(file, "before a fork");
                  file.close();
                  ::_exit(fine ? 0 : 1);
              }),
              "fine");
    EXPECT_EQ(file.root<list>()->sum(), 6);
    file.root<list>()->push(file, 4);
    ASSERT_TRUE(file.commit());
    EXPECT_FALSE(file_arena().open(given.path.c_str())) << "the lock is still held";
}

// ---- what is no file arena ----

TEST(a_file_arena_refuses, paths_that_lead_to_no_file)
{
    temporary_folder const folder;
    file_arena file;
    auto const refuses = [&](const std::string& path, file_options options, int error,
                             const char* words) {
        EXPECT_FALSE(file.open(path.c_str(), options)) << path;
        EXPECT_FALSE(file.is_open());
        EXPECT_EQ(file.last_error(), error) << path;
        EXPECT_TRUE(says(file, words)) << path << ": " << file.last_refusal();
    };
    refuses(folder / "none", reading, ENOENT, "does not exist");
    refuses(folder / "none", {.access = file_access::existing}, ENOENT, "file_access::create");
    refuses(folder / "no/folder", {}, ENOENT, "folder");
    refuses(folder / "", {}, EISDIR, "folder");
    refuses(folder / "", reading, EINVAL, "not that of a regular file");
    refuses("/dev/null", {}, EINVAL, "not that of a regular file");
    std::string const pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    refuses(pipe, {}, EINVAL, "not that of a regular file");
    refuses(pipe, reading, EINVAL, "not that of a regular file");
    write_bytes(folder / "empty", "");
    refuses(folder / "empty", reading, 0, "empty");
    refuses(folder / "empty", {.access = file_access::existing}, 0, "empty");
    EXPECT_TRUE(file.open((folder / "empty").c_str())) << "an empty file may become one";
    refuses(folder / "new", {.max_bytes = SIZE_MAX}, ENOMEM, "lower max_bytes");
}

TEST(a_file_arena_refuses, a_file_without_permission)
{
    with_list const given;
    EXPECT_EQ(in_a_child([&] {
                  ::chmod(given.path.c_str(), 0);
                  if (::geteuid() == 0 && ::setuid(65534) != 0)
                      ::_exit(0);
                  file_arena file;
                  bool const fine =
                      !file.open(given.path.c_str()) && says(file, "may not be written") &&
                      !file.open(given.path.c_str(), reading) && says(file, "may not be read");
                  ::_exit(fine ? 0 : 1);
              }),
              "fine");
}

} // namespace
