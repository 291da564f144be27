// Tests that after any interruption of a commit the file has the contents of either the old or the
// new commit.
#include "../support/child.hpp"
#include "../support/choices.hpp"
#include "../support/disk.hpp"
#include "../support/files.hpp"
#include "../support/length.hpp"

#include <gtest/gtest.h>

#include <map>

#include <sys/mman.h>

namespace {

using namespace mallard::testing;
using mallard::file_arena;
using mallard::file_options;

constexpr file_options small{.max_bytes = 64 << 20};

/// Makes one random change to the arena: allocates and frees blocks, changes bytes, and sometimes
/// resets the arena. The change depends only on the choices and on earlier changes.
void change(file_arena& file, seeded& choose)
{
    auto const fill = [&](std::byte* p, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; i += 1 + choose(700))
            p[i] = static_cast<std::byte>(choose(256));
    };
    if (choose(6) == 0)
        file.reset();
    for (std::size_t n = choose(4); n > 0; --n) {
        std::size_t const bytes =
            16 * (1 + choose(2500)); // a multiple of 16, so blocks have no gaps
        auto* const block = static_cast<std::byte*>(file.allocate({bytes}));
        std::memset(block, 0, bytes); // the block may have bytes of a failed commit
        fill(block, bytes);
        if (choose(5) == 0)
            file.deallocate(block, {bytes});
    }
    auto* const all = reinterpret_cast<std::byte*>(&file.blocks());
    for (std::size_t n = choose(3); n > 0 && file.stats().bytes_used > 64; --n) {
        std::size_t const begin = 64 + choose(file.stats().bytes_used - 64);
        fill(all + begin, std::min<std::size_t>(file.stats().bytes_used - begin, 3000));
    }
}

constexpr std::size_t commits = 8;

/// Returns the contents of the file after each commit of a program that is not interrupted.
std::vector<std::string> history_of(std::uint64_t seed)
{
    temporary_folder const folder;
    file_arena file;
    EXPECT_TRUE(file.open((folder / "model").c_str(), small)) << file.last_failure();
    std::vector<std::string> history{contents_of(file)};
    for (seeded choose(seed); history.size() <= commits; history.push_back(contents_of(file))) {
        change(file, choose);
        EXPECT_TRUE(file.commit()) << file.last_failure();
    }
    return history;
}

/// Opens the file after an interruption. Expects the state after `done` commits, or, if a commit
/// was interrupted, alternatively the state after that commit.
void expect_state(const std::string& path, const std::vector<std::string>& history,
                  std::size_t done)
{
    file_options options = small;
    options.relocate = options.verify = true;
    auto const is_right = [&](const file_arena& file) {
        std::string const contents = contents_of(file);
        return contents == history[done] ||
               (done + 1 < history.size() && contents == history[done + 1]);
    };
    options.access = mallard::file_access::read;
    file_arena file;
    if (file.open(path.c_str(), options))
        EXPECT_TRUE(is_right(file)) << "to a reader";
    else
        EXPECT_TRUE(says(file, "open the file once for writing")) << file.last_failure();
    options.access = mallard::file_access::create;
    ASSERT_TRUE(file.open(path.c_str(), options)) << file.last_failure();
    EXPECT_TRUE(is_right(file)) << "after " << done << " commits";

    // Checks that the program can continue with the file.
    static_cast<void>(file.make<int>(1));
    ASSERT_TRUE(file.commit()) << file.last_failure();
    std::string const more = contents_of(file);
    file.close();
    ASSERT_TRUE(file.open(path.c_str(), options)) << file.last_failure();
    EXPECT_TRUE(contents_of(file) == more);
}

/// The progress of a child that will be killed, in memory that the child shares with its parent.
struct progress {
    bool opened;
    std::size_t commits;
};

/// Kills one child in its first system call, the next child in its second call, and so on, until a
/// child finishes. A short run kills at every third call.
void kill_at_each_call(std::uint64_t seed, std::size_t tear)
{
    std::vector<std::string> const history = history_of(seed);
    auto* const seen = static_cast<progress*>(::mmap(
        nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    for (std::size_t call = 1;; call += stride(3)) {
        SCOPED_TRACE("killed in call " + std::to_string(call));
        temporary_folder const folder;
        std::string const path = folder / "file";
        *seen = {};
        std::string const end = in_a_child([&] {
            disk.fail_at(call, 0);
            disk.tear = tear;
            file_arena file;
            seen->opened = file.open(path.c_str(), small);
            for (seeded choose(seed); seen->commits < commits; seen->commits += file.commit())
                change(file, choose);
        });
        if (seen->opened) {
            std::string const again =
                in_a_child([&] { // this child is killed too, while it completes the commit
                    disk.fail_at(1 + call % 5, 0);
                    ::_exit(file_arena().open(path.c_str(), small) ? 0 : 1);
                });
            EXPECT_TRUE(again == "fine" || again == "signal 9") << again;
            expect_state(path, history, seen->commits);
        }
        if (end == "fine" || ::testing::Test::HasFatalFailure())
            break;
        ASSERT_EQ(end, "signal 9");
    }
    ::munmap(seen, sizeof(progress));
}

TEST(a_killed_program, leaves_the_last_commit_after_a_kill_at_each_call)
{
    for (std::uint64_t seed : {1, 2})
        kill_at_each_call(seed, 0);
}

TEST(a_killed_program, leaves_the_last_commit_after_a_kill_in_the_middle_of_each_write)
{
    for (std::size_t const tear : {100, 4096 + 2048})
        kill_at_each_call(4, tear);
}

/// Runs a program whose disk fails some calls. The program repeats each commit until it succeeds.
void refuse_at_each_call(std::uint64_t seed, int error, bool for_long, std::size_t tear)
{
    std::vector<std::string> const history = history_of(seed);
    for (std::size_t call = 1;; call += stride(3)) {
        SCOPED_TRACE("refused in call " + std::to_string(call));
        temporary_folder const folder;
        std::string const path = folder / "file", copy = folder / "copy";
        file_arena file;
        ASSERT_TRUE(file.open(path.c_str(), small));
        bool refused = false;
        seeded choose(seed);
        for (std::size_t done = 0; done < commits; ++done) {
            if (done == 2) {
                for_long ? disk.fail_from(call, error) : disk.fail_at(call, error);
                disk.tear = tear;
            }
            change(file, choose);
            while (!file.commit()) {
                refused = true;
                EXPECT_STRNE(file.last_failure(), "");
                EXPECT_EQ(file.last_error(), error);
                EXPECT_TRUE(contents_of(file) == history[done + 1]) << "memory stays as it was";
                disk = {};
                std::filesystem::copy_file(path, copy,
                                           std::filesystem::copy_options::overwrite_existing);
                expect_state(copy, history, done);
            }
            ASSERT_TRUE(contents_of(file) == history[done + 1]);
        }
        refused = refused || disk.failures != 0;
        disk = {};
        file.close();
        ASSERT_TRUE(file.open(path.c_str(), small)) << file.last_failure();
        ASSERT_TRUE(contents_of(file) == history[commits]);
        if (!refused || ::testing::Test::HasFailure())
            break;
    }
}

TEST(a_full_disk, leaves_the_last_commit_intact_and_a_later_commit_succeeds_when_there_is_room)
{
    refuse_at_each_call(1, ENOSPC, true, 0);
    refuse_at_each_call(2, ENOSPC, true, 1000);
    refuse_at_each_call(3, EDQUOT, false, 0);
}

TEST(a_broken_disk, leaves_one_of_the_last_two_commits_at_any_error)
{
    refuse_at_each_call(5, EIO, false, 5000);
}

TEST(an_interrupted_system_call, is_repeated)
{
    temporary_folder const folder;
    file_arena file;
    ASSERT_TRUE(file.open((folder / "file").c_str(), small));
    disk.fail_at(1, EINTR);
    static_cast<void>(file.make<int>(1));
    EXPECT_TRUE(file.commit()) << file.last_failure();
    disk = {};
}

/// A simulated disk after a power failure. Some of the 512-byte sectors that were not synced are
/// written, and some are not.
class disk_image {
public:
    void make(const disk_change& change)
    {
        if (change.what == disk_change::cut)
            bytes_.resize(change.at);
        else
            put(change.at, change.bytes);
    }
    void make_some(const disk_change& change, seeded& choose)
    {
        if (choose(3) == 0)
            return;
        if (change.what == disk_change::cut || choose(2) == 0)
            return make(change);
        for (std::size_t at = 0; at < change.bytes.size(); at += 512)
            if (choose(2) == 0)
                put(change.at + at, change.bytes.substr(at, 512));
    }
    const std::string& bytes() const { return bytes_; }

private:
    void put(std::size_t at, const std::string& bytes)
    {
        bytes_.resize(std::max(bytes_.size(), at + bytes.size()));
        bytes_.replace(at, bytes.size(), bytes);
    }
    std::string bytes_;
};

TEST(a_power_failure, leaves_the_last_commit_for_any_order_of_writes)
{
    for (std::uint64_t seed = 10; seed < 13; ++seed) {
        std::vector<std::string> const history = history_of(seed);
        temporary_folder const folder;
        std::vector<disk_change> log;
        std::map<std::size_t, std::size_t> done_at; // journal length -> number of commits
        {
            file_arena file;
            disk = {.log = &log};
            ASSERT_TRUE(file.open((folder / "file").c_str(), small));
            seeded choose(seed);
            for (std::size_t done = 0; done <= commits; ++done) {
                done_at[log.size()] = done;
                change(file, choose);
                ASSERT_TRUE(done == commits || file.commit());
            }
            disk = {};
        }
        seeded choose(seed);
        disk_image synced;
        for (std::size_t end = 0, begin = 0; end < log.size(); ++end) {
            if (log[end].what == disk_change::sync)
                for (; begin <= end; ++begin)
                    if (log[begin].what != disk_change::sync)
                        synced.make(log[begin]);
            if (end + 1 < done_at.begin()->first)
                continue; // the file was not complete yet
            std::size_t const done = std::prev(done_at.upper_bound(end + 1))->second;
            for (std::size_t time = 0; time < repeated(6, 2); ++time) {
                SCOPED_TRACE("seed " + std::to_string(seed) + ", call " + std::to_string(end));
                disk_image image = synced;
                for (std::size_t i = begin; i <= end; ++i)
                    image.make_some(log[i], choose);
                write_bytes(folder / "image", image.bytes());
                expect_state(folder / "image", history, done);
                if (::testing::Test::HasFailure())
                    return;
            }
        }
    }
}

TEST(a_file_arena, finds_changed_pages_when_the_system_does_not_report_them)
{
    std::vector<std::string> const history = history_of(20);
    temporary_folder const folder;
    std::string const path = folder / "file";
    disk.hides_pagemap = true;
    seeded choose(20);
    file_arena file;
    for (std::size_t done = 0; done < commits; ++done) {
        ASSERT_TRUE(file.open(path.c_str(), small)) << file.last_failure();
        ASSERT_TRUE(contents_of(file) == history[done]);
        change(file, choose);
        ASSERT_TRUE(file.commit()) << file.last_failure();
        std::size_t const calls = disk.calls;
        ASSERT_TRUE(file.commit());
        EXPECT_EQ(disk.calls, calls) << "nothing has changed";
    }
    disk = {};
    EXPECT_TRUE(file.verify());
    EXPECT_TRUE(contents_of(file) == history[commits]);
}

/// Runs a random program and compares the file with a model. The program closes the file without a
/// commit, opens it at another address, and survives failures of the disk.
TEST(a_file_arena, agrees_with_a_model_in_random_programs)
{
    for (std::uint64_t seed = 100; seed < 100 + repeated(30, 5); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        temporary_folder const folder;
        std::string const path = folder / "file";
        seeded choose(seed);
        file_arena file;
        file_options options = small;
        options.relocate = true;
        ASSERT_TRUE(file.open(path.c_str(), options));
        std::string committed = contents_of(file);
        for (int step = 0; step < 40; ++step) {
            std::size_t const what = choose(8);
            if (what < 3) {
                change(file, choose);
            } else if (what < 6) {
                if (what == 5)
                    disk.fail_from(1 + choose(8), ENOSPC);
                std::string const now = contents_of(file);
                bool const done = file.commit();
                disk = {};
                ASSERT_TRUE(contents_of(file) == now);
                if (done || file.commit())
                    committed = now;
            } else {
                void* const home = &file.blocks();
                file.close();
                bool const taken = choose(2) == 0;
                if (taken)
                    ::mmap(home, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                           -1, 0);
                ASSERT_TRUE(file.open(path.c_str(), options)) << file.last_failure();
                if (taken)
                    ::munmap(home, 4096);
                ASSERT_TRUE(contents_of(file) == committed);
                ASSERT_TRUE(file.verify());
            }
        }
    }
}

} // namespace
