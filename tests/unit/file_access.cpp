// Tests which processes can open a file arena, at which address, and which files are rejected.
#include <mallard/persist/file_arena.hpp>

#include "../support/child.hpp"
#include "../support/list_file.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/stat.h>

namespace {

using namespace mallard::testing;
using mallard::file_access;
using mallard::file_arena;
using mallard::file_options;

constexpr file_options reading{.access = file_access::read};
constexpr file_options moving{.max_bytes = 1 << 20, .relocate = true};

// ---- relocation ----

TEST(a_relocated_file_arena, is_rejected_unless_the_options_allow_it)
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
    ASSERT_TRUE(other.open(given.path.c_str(), moving)) << other.last_failure();
    EXPECT_TRUE(other.relocated());
    EXPECT_NE(static_cast<void*>(&other.blocks()), home);
    list* const keys = other.root<list>();
    EXPECT_EQ(keys->sum(), 6);
    keys->push(other, 4);
    ASSERT_TRUE(other.commit());
    other.close();
    ::munmap(taken, 4096);
    ASSERT_TRUE(file.open(given.path.c_str(), moving)) << file.last_failure();
    EXPECT_FALSE(file.relocated());
    EXPECT_EQ(file.root<list>()->sum(), 10);
}

// ---- readers and writers ----

TEST(readers_of_a_file_arena, can_be_many_and_cannot_allocate)
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
    EXPECT_TRUE(says(writer, "a writer needs it exclusively")) << writer.last_failure();
}

TEST(a_writer_of_a_file_arena, excludes_all_other_writers_and_readers)
{
    with_list const given;
    file_arena writer;
    ASSERT_TRUE(writer.open(given.path.c_str()));
    EXPECT_EQ(in_a_child([&] {
                  file_arena other;
                  bool const fine = !other.open(given.path.c_str()) &&
                                    says(other, "a writer needs it exclusively") &&
                                    !other.open(given.path.c_str(), reading) &&
                                    says(other, "already open for writing") && !other.is_open();
                  ::_exit(fine ? 0 : 1);
              }),
              "fine");
    writer.root<list>()->push(writer, 1);
    EXPECT_TRUE(writer.commit());
}

TEST(a_child_of_a_fork, can_use_the_inherited_memory_but_cannot_commit)
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

// ---- files that are no file arena ----

TEST(a_file_arena_rejects, paths_that_are_not_regular_files)
{
    temporary_folder const folder;
    file_arena file;
    auto const refuses = [&](const std::string& path, file_options options, int error,
                             const char* words) {
        EXPECT_FALSE(file.open(path.c_str(), options)) << path;
        EXPECT_FALSE(file.is_open());
        EXPECT_EQ(file.last_error(), error) << path;
        EXPECT_TRUE(says(file, words)) << path << ": " << file.last_failure();
    };
    refuses(folder / "none", reading, ENOENT, "does not exist");
    refuses(folder / "none", {.access = file_access::existing}, ENOENT, "file_access::create");
    refuses(folder / "no/folder", {}, ENOENT, "directory");
    refuses(folder / "", {}, EISDIR, "directory");
    refuses(folder / "", reading, EINVAL, "not that of a regular file");
    refuses("/dev/null", {}, EINVAL, "not that of a regular file");
    std::string const pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    refuses(pipe, {}, EINVAL, "not that of a regular file");
    refuses(pipe, reading, EINVAL, "not that of a regular file");
    write_bytes(folder / "empty", "");
    refuses(folder / "empty", reading, 0, "empty");
    refuses(folder / "empty", {.access = file_access::existing}, 0, "empty");
    EXPECT_TRUE(file.open((folder / "empty").c_str())) << "an empty file may become a file arena";
    refuses(folder / "new", {.max_bytes = SIZE_MAX}, ENOMEM, "lower max_bytes");
}

TEST(a_file_arena_rejects, files_without_permission)
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
