// Tests file arenas on real disks that are full, read-only, or limited. Each test runs in a process
// that mounts a small, private file system.
#include "../support/child.hpp"
#include "../support/files.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

namespace {

using namespace mallard::testing;
using mallard::file_access;
using mallard::file_arena;

constexpr std::size_t mib = std::size_t{1} << 20;

/// Calls `f(folder)` with a directory on a file system of 1 MiB. Returns "skipped" if mounting is
/// not permitted.
template <class F>
std::string with_a_small_disk(F f)
{
    temporary_folder const folder;
    std::string const end = in_a_child([&] {
        if (::unshare(CLONE_NEWNS) != 0 ||
            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("none", (folder / "").c_str(), "tmpfs", 0, "size=1m") != 0)
            ::_exit(77);
        f(folder);
    });
    return end == "exit 77" ? "skipped" : end;
}

TEST(a_file_arena_on_a_full_disk,
     leaves_the_last_commit_intact_and_commits_again_when_there_is_room)
{
    std::string const end = with_a_small_disk([](const temporary_folder& folder) {
        std::string const path = folder / "file", other = folder / "other";
        file_arena file;
        require(file.open(path.c_str()), "a file is created");
        auto* const kept = static_cast<char*>(file.allocate({mib / 4}));
        require(file.commit(), "what was never touched is on the disk too");
        write_bytes(other, std::string(mib, 'x')); // fills the disk

        for (std::size_t i = 0; i < mib / 4; i += 4096)
            kept[i] = 1; // changes a page that was zero in the file
        auto* const more = static_cast<char*>(file.allocate({mib / 4}));
        std::memset(more, 2, mib / 4);
        for (int time = 0; time < 3; ++time) {
            require(!file.commit() && file.last_error() == ENOSPC, "the disk is full");
            require(says(file, "the disk is full"), "last_failure says so");
        }
        require(kept[4096] == 1 && more[mib / 4 - 1] == 2 && file.verify(),
                "everything is unchanged");
        std::filesystem::remove(other);
        require(file.commit(), "there is room now");
        file.close();
        require(file.open(path.c_str(), {.verify = true}), "it opens");
        require(kept[4096] == 1 && more[mib / 4 - 1] == 2, "the file has all commits");
    });
    if (end == "skipped")
        GTEST_SKIP() << "no file system may be mounted here";
    EXPECT_EQ(end, "fine");
}

TEST(a_file_arena_on_a_full_disk, is_not_created)
{
    std::string const end = with_a_small_disk([](const temporary_folder& folder) {
        write_bytes(folder / "other", std::string(mib, 'x'));
        file_arena file;
        require(!file.open((folder / "file").c_str()) && says(file, "the disk is full"),
                "it is refused");
    });
    if (end == "skipped")
        GTEST_SKIP() << "no file system may be mounted here";
    EXPECT_EQ(end, "fine");
}

TEST(a_file_arena_on_a_read_only_disk, can_be_read)
{
    std::string const end = with_a_small_disk([](const temporary_folder& folder) {
        std::string const path = folder / "file";
        file_arena file;
        require(file.open(path.c_str()) && file.root_or_make<int>(5) && file.commit(),
                "the file is created");
        file.close();
        require(::mount("none", (folder / "").c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) ==
                    0,
                "the disk is read-only");
        require(!file.open(path.c_str()) && file.last_error() == EROFS, "no writer");
        require(says(file, "file_access::read"), "last_failure says what to do");
        require(file.open(path.c_str(), {.access = file_access::read}), "but readers");
        require(*file.root<int>() == 5, "readers find all commits");
    });
    if (end == "skipped")
        GTEST_SKIP() << "no file system may be mounted here";
    EXPECT_EQ(end, "fine");
}

TEST(a_file_arena_under_a_limit, keeps_the_last_commit_when_the_file_may_not_grow)
{
    temporary_folder const folder;
    EXPECT_EQ(in_a_child([&] {
                  std::signal(SIGXFSZ, SIG_IGN);
                  rlimit const limit{mib / 2, mib / 2};
                  ::setrlimit(RLIMIT_FSIZE, &limit);
                  file_arena file;
                  require(file.open((folder / "file").c_str()), "the file is created");
                  require(file.root_or_make<int>(5) && file.commit(), "it is small");
                  std::memset(file.allocate({mib}), 1, mib);
                  require(!file.commit() && file.last_error() == EFBIG, "it may not grow");
                  require(says(file, "ulimit -f"), "last_failure says why");
                  file.reset();
                  require(file.root_or_make<int>(6) && file.commit(), "it is small again");
              }),
              "fine");
    file_arena file;
    ASSERT_TRUE(file.open((folder / "file").c_str()));
    EXPECT_EQ(*file.root<int>(), 6);
}

TEST(a_file_arena_under_a_limit, cannot_be_opened_where_no_address_space_is_left)
{
    temporary_folder const folder;
    EXPECT_EQ(in_a_child([&] {
                  std::size_t pages = 0; // pages that were mapped before
                  std::ifstream("/proc/self/statm") >> pages;
                  rlim_t const bytes = pages * 4096 + 64 * mib;
                  rlimit const limit{bytes, bytes};
                  ::setrlimit(RLIMIT_AS, &limit);
                  file_arena file;
                  require(!file.open((folder / "file").c_str()),
                          "16 GiB of address space are too much");
                  require(says(file, "lower max_bytes"), "last_failure says what to do");
                  require(file.open((folder / "file").c_str(), {.max_bytes = mib}), "1 GiB is not");
              }),
              "fine");
}

} // namespace
