// Tests the memory limits of control groups. The tests write the files of the groups themselves,
// because few machines allow a test to create real control groups.
#include "../../src/heap/decay.hpp"
#include "../../src/heap/slice_heap.hpp"
#include "../../src/os/cgroup.hpp"
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

#include <sys/syscall.h>

namespace {

using namespace mallard::testing;

/// Stands in for /sys/fs/cgroup (a directory) and for /proc/self/cgroup (a file).
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
    void group(const std::string& path, const std::string& max) const
    {
        write(path + "/memory.max", max + "\n");
    }

    std::size_t limit() const
    {
        return mallard::os::memory_limit_of_group((root_ / "own").c_str(), root_.c_str());
    }
    const std::filesystem::path& root() const { return root_; }

private:
    std::filesystem::path root_;
};

TEST(cgroup, has_the_limit_of_the_group_of_the_process)
{
    groups const g;
    g.group("a", "1000");
    g.is_in("0::/a\n");
    EXPECT_EQ(g.limit(), 1000u);
    g.group("a", "max");
    EXPECT_EQ(g.limit(), 0u);
}

TEST(cgroup, uses_the_nearest_group_with_a_limit)
{
    groups const g;
    g.group("a", "1000");
    g.group("a/b", "max");
    g.write("a/b/c/cgroup.procs", "1\n"); // a group without the memory controller
    g.is_in("3:memory:/x\n1:name=systemd:/y\n0::/a/b/c\n");
    EXPECT_EQ(g.limit(), 1000u);
    g.group("a/b", "500");
    EXPECT_EQ(g.limit(), 500u);
}

TEST(cgroup, of_a_container_may_appear_as_the_root_group)
{
    groups const g;
    EXPECT_EQ(g.limit(), 0u);
    g.group(".", "1000");
    EXPECT_EQ(g.limit(), 1000u);
}

TEST(cgroup, has_no_limit_if_the_path_of_the_group_is_missing_or_invalid)
{
    groups const g;
    g.group("a", "1000");
    for (const char* const text :
         {"", "\n", "0:", "0::", "0::relative\n", "4:memory:/a\n", "0::/b\n", "0::/../a\n"}) {
        g.is_in(text);
        EXPECT_EQ(g.limit(), 0u) << text;
    }
    g.is_in("0::/" + std::string(900, 'a') + "\n");
    EXPECT_EQ(g.limit(), 0u);
    EXPECT_EQ(mallard::os::memory_limit_of_group("/nonexistent", "/nonexistent"), 0u);
}

TEST(cgroup, has_no_limit_when_its_file_is_unreadable)
{
    groups const g;
    g.is_in("0::/a\n");
    for (const char* const text : {"", "many", "-1", "max"}) {
        g.write("a/memory.max", text);
        EXPECT_EQ(g.limit(), 0u) << text;
    }
    std::filesystem::remove(g.root() / "a/memory.max");
    std::filesystem::create_directory(g.root() / "a/memory.max"); // opens, but cannot be read
    EXPECT_EQ(g.limit(), 0u);
    std::filesystem::remove_all(g.root() / "a");
    errno = 0;
    EXPECT_EQ(g.limit(), 0u);
    EXPECT_EQ(errno, 0);
}

TEST(cgroup, survives_a_failure_of_each_system_call)
{
    groups const g;
    g.group("a", "1000");
    g.is_in("0::/a\n");
    for (long const call : {SYS_openat, SYS_read, SYS_close})
        EXPECT_EQ(in_a_child([&] {
                      require(refuse_call(call, EPERM), "the call is refused");
                      errno = 0;
                      require((g.limit() != 0) == (call == SYS_close), "no limit is found");
                      require(errno == 0, "errno is unchanged");
                  }),
                  "fine")
            << call;
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
    using mallard::engine::set_group_limit;
    set_group_limit(1024 * mebibyte);
    EXPECT_GE(idle_after_free(), 19 * mebibyte);
    set_group_limit(100 * mebibyte);
    EXPECT_TRUE(in_the_end([] { return idle_after_free() <= 5 * mebibyte; }))
        << "the shortage is seen";
    set_group_limit(0);
    EXPECT_TRUE(in_the_end([] { return idle_after_free() >= 19 * mebibyte; }))
        << "the end of the shortage is seen";
}

TEST(memory_shortage, is_detected_when_malloc_holds_three_quarters_of_the_limit)
{
    mallard_trim(0);                                   // returns what earlier tests have left
    void* const block = mallard_malloc(50 * mebibyte); // large, so it is a separate mapping
    void* const others = mallard_malloc(25 * mebibyte);
    std::size_t const all = 50 * mebibyte + 25 * mebibyte;
    mallard::engine::set_group_limit(all / 3 * 4 + 16 * mebibyte);
    EXPECT_FALSE(mallard::engine::memory_is_short());
    mallard::engine::set_group_limit(all / 3 * 4 - 16 * mebibyte);
    EXPECT_TRUE(mallard::engine::memory_is_short());
    mallard::engine::set_group_limit(0);
    EXPECT_FALSE(mallard::engine::memory_is_short());
    mallard_free(others);
    mallard_free(block);
}

} // namespace
