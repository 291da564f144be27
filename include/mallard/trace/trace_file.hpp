// Events of several allocators, in one file. What writes it is in src/os.
#pragma once

#include <mallard/detail/base/cxx20.hpp>
#include <mallard/trace/trace_format.h>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <span>
#include <string_view>

namespace mallard {

class trace_file;

/// Now, by the clock of traces that are written here: `mallard_trace_clock_monotonic`.
inline std::uint64_t trace_now() noexcept
{
    auto const since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

/// One allocator's way into a file, under a number of its own. Copies are the same.
class trace_channel {
public:
    trace_channel(trace_file& file, std::uint32_t number) noexcept : file_(&file), number_(number)
    {
    }
    inline void operator()(mallard_trace_record r) const noexcept;

    std::uint32_t number() const noexcept { return number_; }

private:
    trace_file* file_;
    std::uint32_t number_;
};

/// A trace, as `trace_reader` and later `mallard` read it.
///
///     mallard::trace_file file("app.trace");
///     mallard::traced<mallard::multipool<>> orders(file.channel("orders"));
///     ...
///     if (!file.close())
///         std::puts(file.last_failure()); // the disk is full: ...
///
/// Made anew; an older one is overwritten. Events gather 500 at a time in the object,
/// 16 KiB large, and are written when it is full, at `flush`, and at `close`. It
/// allocates nothing, so whatever is traced may be the program's own heap. If the
/// process is killed, what was not written is lost, and the rest is readable.
///
/// Nothing here throws. When the file cannot be written, events are lost and counted,
/// and writing is tried again now and then: `last_error` and `last_failure` say what
/// is wrong, and the trace says where some are missing, and how many. A child of a
/// fork writes nothing into its parent's file.
///
/// Any thread. Must outlive what it traces.
class trace_file {
public:
    explicit trace_file(const char* path) noexcept;
    trace_file(const trace_file&) = delete;
    trace_file& operator=(const trace_file&) = delete;
    ~trace_file() { close(); }

    /// For an allocator of that name; up to 255 characters of it are kept.
    trace_channel channel(std::string_view name) noexcept;

    void append(const mallard_trace_record& r) noexcept;

    /// False if not all that was appended is written.
    bool flush() noexcept;

    /// The last record, and the end. False if anything is missing in the file. Events
    /// that come later are lost.
    bool close() noexcept;

    std::uint64_t events_lost() const noexcept;

    /// The `errno` of the last refusal, 0 when there was none, and what to do about
    /// it, in one line that lives for ever.
    int last_error() const noexcept;
    const char* last_failure() const noexcept;

private:
    static constexpr std::size_t records_max = 500;

    // All of these hold the lock.
    bool has_room(std::size_t records) noexcept;
    void put(const mallard_trace_record& r) noexcept
    {
        buffer_[count_++] = r;
        records_ += 1;
    }
    void put_lost() noexcept;
    bool write_all() noexcept;
    bool refuse(int error) noexcept;

    mutable std::mutex lock_;
    int file_ = -1; // -1: closed, or never open
    int error_ = 0;
    const char* refusal_ = "";
    std::uint32_t pid_ = 0;
    std::uint32_t channels_ = 0;
    std::uint32_t thread_ = 0;  // that of the last record
    std::uint64_t offset_ = 0;  // in the file, of the first record that is not in it
    std::uint64_t records_ = 0; // all, those in the buffer included
    std::uint64_t lost_ = 0;
    std::uint64_t lost_here_ = 0; // since the last record
    std::size_t count_ = 0;
    mallard_trace_record buffer_[records_max];
};

inline void trace_channel::operator()(mallard_trace_record r) const noexcept
{
    r.stack = number_;
    file_->append(r);
}

} // namespace mallard
