// A simulated disk: replaces the system calls that the library makes for files. A test can make
// these calls fail, write only a part, or kill the process. Include this header in programs of one
// source file.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mallard::testing {

/// A change to a file: a write, a truncation, or a sync.
struct disk_change {
    enum kind { write, cut, sync } what;
    std::uint64_t at = 0; // offset of a write; new size of a truncation
    std::string bytes = {};
};

struct disk_orders {
    std::size_t failures = 0;
    std::size_t calls = 0; // calls so far
    // The first and the last call that fail, counted from 1. 0 means that no call fails.
    std::size_t first = 0;
    std::size_t last = 0;
    // The error of the failing calls. 0 means that they kill the process.
    int error = 0;
    std::size_t tear = 0;                    // bytes of a write that reach the file
    bool hides_pagemap = false;              // whether the pagemap is hidden, as in some sandboxes
    std::vector<disk_change>* log = nullptr; // records the changes, if not null

    bool fails()
    {
        ++calls;
        bool const fails = first != 0 && calls >= first && calls <= last;
        failures += fails;
        return fails;
    }
    long go_wrong() const
    {
        if (error == 0)
            ::kill(::getpid(), SIGKILL);
        errno = error;
        return -1;
    }
    void fail_at(std::size_t n, int what) { calls = 0, first = last = n, error = what; }
    void fail_from(std::size_t n, int what) { fail_at(n, what), last = SIZE_MAX; }
};

inline disk_orders disk;

} // namespace mallard::testing

extern "C" {

inline ssize_t do_pwrite(int file, const void* from, std::size_t bytes, off_t at)
{
    return ::syscall(SYS_pwrite64, file, from, bytes, at);
}

ssize_t pwrite(int file, const void* from, std::size_t bytes, off_t at)
{
    using namespace mallard::testing;
    if (disk.fails()) {
        if (disk.tear != 0)
            do_pwrite(file, from, std::min(bytes, disk.tear), at);
        return disk.go_wrong();
    }
    if (disk.log != nullptr)
        disk.log->push_back({disk_change::write, static_cast<std::uint64_t>(at),
                             std::string(static_cast<const char*>(from), bytes)});
    return do_pwrite(file, from, bytes, at);
}

int fdatasync(int file)
{
    using namespace mallard::testing;
    if (disk.fails())
        return static_cast<int>(disk.go_wrong());
    if (disk.log != nullptr)
        disk.log->push_back({.what = disk_change::sync});
    return file < 0 ? -1 : 0; // only recorded, because a real sync takes long
}

int fsync(int file)
{
    return file < 0 ? -1 : 0;
}

int ftruncate(int file, off_t bytes) noexcept
{
    using namespace mallard::testing;
    if (disk.fails())
        return static_cast<int>(disk.go_wrong());
    if (disk.log != nullptr)
        disk.log->push_back({disk_change::cut, static_cast<std::uint64_t>(bytes)});
    return static_cast<int>(::syscall(SYS_ftruncate, file, bytes));
}

int open(const char* path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    bool const creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    unsigned const mode = creates ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    if (mallard::testing::disk.hides_pagemap && std::string_view(path) == "/proc/self/pagemap") {
        errno = EACCES;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

} // extern "C"
