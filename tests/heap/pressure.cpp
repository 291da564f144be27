// Tests of the memory limits of control groups. The tests write the files of the groups themselves,
// since few machines let a test create real control groups.
#include "../../src/heap/decay.hpp"
#include "../../src/heap/slice_heap.hpp"
#include "../support/child.hpp"
#include "../support/refused_call.hpp"
#include "../support/threads.hpp"

#include <mallard/c/malloc.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <pthread.h>
#include <sys/syscall.h>

namespace {

using namespace mallard::testing;
using mallard::os::cgroup;

/// A folder that stands for /sys/fs/cgroup, and a file that stands for /proc/self/cgroup.
class groups {
public:
    groups() : root_(std::filesystem::temp_directory_path() / "mallard-groups-XXXXXX")
    {
        std::string name = root_.string();
        require(::mkdtemp(name.data()) != nullptr, "a folder was made");
        root_ = name;
        is_in("0::/\n");
    }
    groups(const groups&) = delete;
    groups& operator=(const groups&) = delete;
    ~groups() { std::filesystem::remove_all(root_); }

    void is_in(const std::string& text) const { write("own", text); }
    void write(const std::string& file, const std::string& text) const
    {
        std::filesystem::path const path = root_ / file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    void group(const std::string& path, const std::string& max, const std::string& current) const
    {
        write(path + "/memory.max", max + "\n");
        write(path + "/memory.current", current + "\n");
        write(path + "/memory.stat", "anon 700\nfile 200\nactive_file 10\ninactive_file 20\n");
    }

    cgroup find() const
    {
        cgroup found;
        found.find((root_ / "own").c_str(), root_.c_str());
        return found;
    }
    const std::filesystem::path& root() const { return root_; }

private:
    std::filesystem::path root_;
};

TEST(cgroup, is_short_above_85_percent_of_its_limit)
{
    groups const g;
    g.group("a", "1000", "870");
    g.is_in("0::/a\n");
    cgroup const found = g.find();
    EXPECT_FALSE(found.is_short()); // 20 of the bytes are page cache that can be dropped
    g.group("a", "1000", "871");
    EXPECT_TRUE(found.is_short());
    g.group("a", "2000", "871");
    EXPECT_FALSE(found.is_short());
    g.group("a", "max", "871");
    EXPECT_FALSE(found.is_short());
}

TEST(cgroup, uses_the_nearest_group_with_a_limit)
{
    groups const g;
    g.group("a", "1000", "900");
    g.group("a/b", "max", "10");
    g.write("a/b/c/cgroup.procs", "1\n"); // a group without the memory controller
    g.is_in("3:memory:/x\n1:name=systemd:/y\n0::/a/b/c\n");
    EXPECT_TRUE(g.find().is_short());
    g.group("a/b", "1000", "10");
    EXPECT_FALSE(g.find().is_short());
}

TEST(cgroup, may_be_the_root_group_that_a_container_sees)
{
    groups const g;
    EXPECT_FALSE(g.find().is_known());
    g.group(".", "1000", "900");
    EXPECT_TRUE(g.find().is_short());
}

TEST(cgroup, is_unknown_without_a_readable_path)
{
    groups const g;
    g.group("a", "1000", "900");
    for (const char* const text :
         {"", "\n", "0:", "0::", "0::relative\n", "4:memory:/a\n", "0::/b\n", "0::/../a\n"}) {
        g.is_in(text);
        EXPECT_FALSE(g.find().is_short()) << text;
    }
    g.is_in("0::/" + std::string(900, 'a') + "\n");
    EXPECT_FALSE(g.find().is_known());
    cgroup none;
    EXPECT_FALSE(none.is_short());
    none.find("/nonexistent", "/nonexistent");
    EXPECT_FALSE(none.is_known());
}

TEST(cgroup, is_not_short_when_its_files_are_unreadable)
{
    groups const g;
    g.group("a", "1000", "900");
    g.is_in("0::/a\n");
    cgroup const found = g.find();
    for (const char* const text : {"", "many", "-1", "max"}) {
        g.write("a/memory.current", text);
        EXPECT_FALSE(found.is_short()) << text;
    }
    std::filesystem::remove(g.root() / "a/memory.current");
    std::filesystem::create_directory(g.root() / "a/memory.current"); // opens, but read fails
    EXPECT_FALSE(found.is_short());
    std::filesystem::remove_all(g.root() / "a");
    errno = 0;
    EXPECT_FALSE(found.is_short());
    EXPECT_EQ(errno, 0);
}

TEST(cgroup, survives_a_refusal_of_each_system_call)
{
    groups const g;
    g.group("a", "1000", "900");
    g.is_in("0::/a\n");
    for (long const call : {SYS_openat, SYS_read, SYS_close})
        EXPECT_EQ(in_a_child([&] {
                      cgroup const before = g.find();
                      require(refuse_call(call, EPERM), "the call is refused");
                      errno = 0;
                      require(before.is_short() == (call == SYS_close),
                              "no shortage without the file");
                      require(g.find().is_known() == (call == SYS_close), "no group is found");
                      require(errno == 0, "errno is unchanged");
                  }),
                  "fine")
            << call;
}

TEST(cgroup, reading_is_no_cancellation_point)
{
    groups const g;
    g.group("a", "1000", "900");
    g.is_in("0::/a\n");
    bool came_through = false;
    in_a_thread([&] {
        int before = 0;
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        ::pthread_cancel(::pthread_self());
        ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
        came_through = g.find().is_short();
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    });
    EXPECT_TRUE(came_through);
}

// --- what the engine does when memory is short ----------------------------------

constexpr std::size_t mebibyte = 1 << 20;

std::size_t idle_bytes()
{
    return mallard::engine::the_slice_heap.now().dirty * mallard::engine::slice_bytes;
}

/// Calls malloc and free again and again until `is_so()` is true or 60 seconds have passed.
template <class F>
bool in_the_end(F is_so)
{
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!is_so()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        void* blocks[100];
        for (void*& block : blocks)
            block = mallard_malloc(20'000);
        for (void* const block : blocks)
            mallard_free(block);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

/// Allocates 160 MiB, frees 20 MiB of them, and returns the idle bytes.
std::size_t idle_after_free()
{
    std::vector<void*> blocks;
    for (int i = 0; i < 160; ++i)
        blocks.push_back(std::memset(mallard_malloc(mebibyte), 1, mebibyte));
    for (int i = 0; i < 20; ++i)
        mallard_free(blocks[static_cast<std::size_t>(i)]);
    std::size_t const idle = idle_bytes();
    for (std::size_t i = 20; i < blocks.size(); ++i)
        mallard_free(blocks[i]);
    return idle;
}

TEST(memory_shortage, keeps_little_memory_idle_until_the_shortage_ends)
{
    groups const g;
    g.group("a", "1000", "100");
    g.is_in("0::/a\n");
    mallard::engine::watch_memory(g.find());
    EXPECT_GE(idle_after_free(), 19 * mebibyte);
    g.group("a", "1000", "900");
    EXPECT_TRUE(in_the_end([] { return idle_after_free() <= 5 * mebibyte; }))
        << "the shortage is seen";
    g.group("a", "1000", "100");
    EXPECT_TRUE(in_the_end([] { return idle_after_free() >= 19 * mebibyte; }))
        << "the end of the shortage is seen";
}

TEST(memory_shortage, is_forgotten_in_the_child_of_a_fork)
{
    groups const g;
    g.group("a", "1000", "900");
    g.is_in("0::/a\n");
    mallard::engine::watch_memory(g.find());
    std::uint64_t now = 1'000'000'000;
    static_cast<void>(mallard::engine::memory_is_short(now));
    EXPECT_TRUE(mallard::engine::memory_is_short(now + 2000));
    EXPECT_EQ(in_a_child([&] {
                  require(!mallard::engine::memory_is_short(now + 2500),
                          "no shortage before the child has looked");
              }),
              "fine");
}

} // namespace
