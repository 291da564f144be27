// Tests segments that are corrupt, truncated or not permitted, and a /dev/shm that is full or
// missing.
#include <mallard/persist/shared_memory.hpp>

#include "../support/child.hpp"
#include "../support/segments.hpp"
#include "../unit/pages.hpp"

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

namespace {

using namespace mallard::testing;
using mallard::page_bytes;
using mallard::segment_header;
using mallard::shared_memory;

struct configuration {
    std::uint64_t answer = 42;
};

void require_refused(const shared_memory& s, int error, std::string_view words)
{
    doing = s.last_failure();
    require(!s && s.last_error() == error, "the failure has an errno");
    require(says(s.last_failure(), words), "with a line that explains it");
}

/// A segment with a root. A test can change its bytes.
class segment_file {
public:
    segment_file() : name("-fault")
    {
        auto made = required(shared_memory::create(name, 2 * page_bytes));
        require(made.root<configuration>() != nullptr, "there is room for a root");
        file_ = ::open(name.path().c_str(), O_RDWR);
    }
    ~segment_file() { ::close(file_); }

    void flip(std::size_t offset, unsigned bits) const
    {
        unsigned char byte = 0;
        require(::pread(file_, &byte, 1, static_cast<off_t>(offset)) == 1, "a byte is read");
        byte = static_cast<unsigned char>(byte ^ bits);
        require(::pwrite(file_, &byte, 1, static_cast<off_t>(offset)) == 1, "and written");
    }
    void write(std::size_t offset, std::uint64_t word) const
    {
        require(::pwrite(file_, &word, 8, static_cast<off_t>(offset)) == 8, "a word is written");
    }
    void truncate(std::size_t bytes) const
    {
        require(::ftruncate(file_, static_cast<off_t>(bytes)) == 0, "the file is truncated");
    }

    segment_name name;

private:
    int file_;
};

bool is_in_a_field(std::size_t byte)
{
    return byte < offsetof(segment_header, checksum) + 8 ||
           (byte >= offsetof(segment_header, cursor) &&
            byte < offsetof(segment_header, cursor) + 8) ||
           (byte >= offsetof(segment_header, root_state) &&
            byte < offsetof(segment_header, root_hash) + 8);
}

TEST(a_corrupt_header, is_rejected_for_any_changed_byte)
{
    segment_file const file;
    for (std::size_t byte = 0; byte < sizeof(segment_header); ++byte) {
        for (unsigned const bits : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U, 255U}) {
            file.flip(byte, bits);
            auto opened = shared_memory::open(file.name);
            auto* const root = opened.root<configuration>();
            if (is_in_a_field(byte)) {
                EXPECT_EQ(root, nullptr) << byte << ": " << bits;
                EXPECT_NE(opened.last_error(), 0) << byte << ": " << bits;
                EXPECT_STRNE(opened.last_failure(), "") << byte << ": " << bits;
            } else {
                EXPECT_TRUE(root != nullptr && root->answer == 42) << "no change in byte " << byte;
            }
            file.flip(byte, bits);
        }
    }
    auto opened = required(shared_memory::open(file.name));
    EXPECT_EQ(opened.root<configuration>()->answer, 42U) << "everything is unchanged";
}

TEST(a_corrupt_header, makes_allocation_fail_in_processes_that_have_mapped_the_segment)
{
    segment_file const file;
    auto opened = required(shared_memory::open(file.name));
    file.flip(offsetof(segment_header, cursor) + 3, 4);
    EXPECT_EQ(opened.try_allocate({8}), nullptr);
    file.flip(offsetof(segment_header, cursor) + 3, 4);
    EXPECT_NE(opened.try_allocate({8}), nullptr);
}

TEST(a_root, is_constructed_again_if_its_constructor_died_and_the_pid_was_reused)
{
    segment_file const file;
    auto opened = required(shared_memory::open(file.name));
    auto* const root = opened.root<configuration>();
    root->answer = 7; // the root is half constructed when the process stops here
    auto const pid = static_cast<std::uint64_t>(::getpid());
    std::uint64_t const begun_at_boot = mallard::checked_number::of(pid << 26);
    file.write(offsetof(segment_header, root_state), begun_at_boot);
    EXPECT_EQ(opened.root<configuration>(), root);
    EXPECT_EQ(root->answer, 42U);
}

TEST(a_segment, a_segment_of_another_version_is_rejected_and_the_message_says_why)
{
    segment_file const file;
    file.flip(offsetof(segment_header, version), 3);
    require_refused(shared_memory::open(file.name), EBADMSG, "version");
}

TEST(a_segment, is_rejected_after_truncation_to_any_length)
{
    segment_file const file;
    for (std::size_t const bytes :
         {2 * page_bytes - 1, page_bytes + 1, page_bytes, page_bytes - 1, sizeof(segment_header),
          std::size_t{1}, std::size_t{0}, page_bytes, 2 * page_bytes, 4 * page_bytes}) {
        file.truncate(bytes);
        auto const opened = shared_memory::open(file.name);
        EXPECT_FALSE(opened) << bytes;
        EXPECT_EQ(opened.last_error(), EBADMSG) << bytes << ": " << opened.last_failure();
    }
}

TEST(a_segment, is_rejected_if_it_is_larger_than_its_header_says)
{
    segment_file const file;
    file.truncate(3 * page_bytes);
    require_refused(shared_memory::open(file.name), EBADMSG, "truncated");
}

TEST(a_segment, without_a_name_cannot_be_truncated)
{
    auto const segment = required(shared_memory::anonymous(2 * page_bytes));
    EXPECT_NE(::ftruncate(segment.descriptor(), page_bytes), 0);
    EXPECT_NE(::ftruncate(segment.descriptor(), 3 * page_bytes), 0);
}

TEST(a_file_that_is_not_a_segment, is_rejected)
{
    namespace fs = std::filesystem;
    segment_name const name("-other");
    std::ofstream(name.path()) << std::string(2 * page_bytes, 'x');
    require_refused(shared_memory::open(name), EBADMSG, "not a segment");
    fs::remove(name.path());
    fs::create_directory(name.path());
    require_refused(shared_memory::open(name), EISDIR, "another name");
    require_refused(shared_memory::open_or_create(name, 1), EISDIR, "another name");
    require_refused(shared_memory::create(name, 1), EEXIST, "remove it");
    fs::remove(name.path());
    fs::create_symlink("/dev/zero", name.path());
    require_refused(shared_memory::open(name), ELOOP, "another name");
    fs::remove(name.path());
    require(::mkfifo(name.path().c_str(), 0600) == 0, "a pipe is made");
    require_refused(shared_memory::open(name), EBADMSG, "not a segment");

    int ends[2];
    require(::pipe(ends) == 0, "another pipe");
    require_refused(shared_memory::attach(ends[0]), EBADMSG, "not a segment");
    ::close(ends[0]);
    ::close(ends[1]);
    require_refused(shared_memory::attach(-1), EBADF, "descriptor");
}

TEST(a_file_descriptor, is_rejected_if_it_is_read_only)
{
    segment_file const file;
    int const reads = ::open(file.name.path().c_str(), O_RDONLY);
    require_refused(shared_memory::attach(reads), EACCES, "O_RDWR");
    ::close(reads);
}

void become_nobody()
{
    if (::geteuid() == 0)
        require(::setresgid(65534, 65534, 65534) == 0 && ::setresuid(65534, 65534, 65534) == 0,
                "root may become an unprivileged user");
}

TEST(the_segment_of_another_user, is_rejected_unless_its_mode_permits_access)
{
    if (::geteuid() != 0)
        GTEST_SKIP() << "only root can be two users";
    segment_file const file;
    EXPECT_EQ(in_a_child([&] {
                  become_nobody();
                  require_refused(shared_memory::open(file.name), EACCES, "another user");
                  require_refused(shared_memory::open_or_create(file.name, 1), EACCES, "mode");
                  require(bool(shared_memory::remove(file.name)),
                          "the segment may not be removed either");
              }),
              "fine");
    segment_name const shared("-all");
    mode_t const before = ::umask(0);
    auto const made = required(shared_memory::create(shared, 1, 0666));
    ::umask(before);
    EXPECT_EQ(in_a_child([&] {
                  become_nobody();
                  static_cast<void>(required(shared_memory::open(shared)));
              }),
              "fine");
}

TEST(limits_of_the_process, are_named_in_the_error_message)
{
    segment_name const name("-limits");
    EXPECT_EQ(in_a_child([&] {
                  limit(RLIMIT_FSIZE, page_bytes);
                  require_refused(shared_memory::create(name, 2 * page_bytes), EFBIG, "ulimit -f");
                  static_cast<void>(required(shared_memory::create(name, page_bytes)));
              }),
              "fine");
    EXPECT_EQ(in_a_child([&] {
                  limit(RLIMIT_NOFILE, 3);
                  require_refused(shared_memory::open(name), EMFILE, "ulimit -n");
                  require_refused(shared_memory::create("other", 1), EMFILE, "ulimit -n");
                  require_refused(shared_memory::anonymous(1), EMFILE, "ulimit -n");
              }),
              "fine");
    if (!may_refuse_memory())
        return;
    // Leaves some address space, because a sanitizer may map memory before the segment is opened.
    std::size_t const left = 4 << 20;
    segment_name const large("-larger-than-left");
    auto const made = required(shared_memory::create(large, 2 * left));
    EXPECT_EQ(in_a_child([&] {
                  limit(RLIMIT_AS, mapped_pages() * page_bytes + left);
                  require_refused(shared_memory::open(large), ENOMEM, "ulimit -v");
              }),
              "fine");
}

TEST(a_segment_larger_than_the_memory_of_the_machine, fails_before_any_page_is_filled)
{
    if (proc_file("/proc/sys/vm/overcommit_memory").text[0] == '1')
        GTEST_SKIP() << "this system overcommits memory";
    segment_name const name("-large");
    std::size_t const too_much = std::size_t{1} << 46;
    require_refused(shared_memory::create(name, too_much), ENOMEM, "free -m");
    require_refused(shared_memory::anonymous(too_much), ENOMEM, "free -m");
}

/// Gives this child process its own /dev/shm. Returns false if that is not permitted.
bool mount_own_shm(const char* options)
{
    return ::unshare(CLONE_NEWNS) == 0 &&
           ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("none", "/dev/shm", "tmpfs", 0, options) == 0;
}

TEST(a_full_dev_shm, makes_creation_fail_and_leaves_no_file)
{
    EXPECT_EQ(in_a_child([] {
                  if (!mount_own_shm("size=1M"))
                      return;
                  auto first = required(shared_memory::create("first", 512 << 10));
                  require_refused(shared_memory::create("second", 768 << 10), ENOSPC, "full");
                  require_refused(shared_memory::create("third", 2 << 20), ENOSPC, "full");
                  require_refused(shared_memory::open("second"), ENOENT, "no segment");
                  static_cast<void>(required(shared_memory::create("rest", 512 << 10)));
                  // All memory of the segment can be written, although the file system is full by
                  // now, because the segment has reserved its memory.
                  std::size_t const bytes = first.stats().bytes_idle;
                  std::memset(first.allocate({bytes, 1}), 1, bytes);
              }),
              "fine");
}

TEST(a_dev_shm, makes_creation_fail_when_it_is_missing_or_not_writable)
{
    EXPECT_EQ(in_a_child([] {
                  if (!mount_own_shm("mode=755"))
                      return;
                  become_nobody();
                  require_refused(shared_memory::create("a", 1), EACCES, "ls -ld /dev/shm");
              }),
              "fine");
    EXPECT_EQ(in_a_child([] {
                  if (!mount_own_shm("") || ::mount("none", "/dev", "tmpfs", 0, "") != 0)
                      return;
                  require_refused(shared_memory::create("a", 1), ENOENT, "mount them");
                  require_refused(shared_memory::open_or_create("a", 1), ENOENT, "mount them");
              }),
              "fine");
}

} // namespace
