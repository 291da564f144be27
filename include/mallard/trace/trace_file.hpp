// Writes the trace events of several allocators to a file. Needs the compiled library, because the
// system calls are in src/os.
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

/// Returns the current time in nanoseconds, by the clock `mallard_trace_clock_monotonic`.
inline std::uint64_t trace_now() noexcept
{
    auto const since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

/// A sink for the events of one allocator. It writes the events to a `trace_file`, together with
/// the number of the allocator. Copies of a channel have the same number.
///
///     mallard::trace_channel const orders = file.channel("orders");
class trace_channel {
public:
    /// Makes the channel `number` of `file`.
    trace_channel(trace_file& file, std::uint32_t number) noexcept : file_(&file), number_(number)
    {
    }
    /// Writes an event of this channel to the file. Any thread may call this function.
    inline void operator()(mallard_trace_record r) const noexcept;

    /// Returns the number of the channel in the file.
    std::uint32_t number() const noexcept { return number_; }

private:
    trace_file* file_;
    std::uint32_t number_;
};

/// Writes a trace file. `trace_reader` and the command `mallard` read such files.
///
///     mallard::trace_file file("app.trace");
///     mallard::traced<mallard::multipool<>> orders(file.channel("orders"));
///     ...
///     if (!file.close())
///         std::puts(file.last_failure()); // the disk is full: ...
///
/// If the file exists, it is overwritten. The object has a buffer of 16 KiB for 500 events, and
/// writes the buffer when it is full, at `flush`, and at `close`. A `trace_file` allocates nothing,
/// so even the heap of the program may be traced. If the process is killed, the events in the
/// buffer are lost, and all earlier events can be read.
///
/// No function throws. When the file cannot be written, events are lost and counted, and
/// `trace_file` tries to write again from time to time. `last_error` and `last_failure` return the
/// error, and the trace records where events are missing, and how many. The child of a fork writes
/// nothing.
///
/// Any thread may use it. A `trace_file` must outlive the traced allocators.
class trace_file {
public:
    /// Creates the file, or overwrites it. If that fails, `last_error` is not 0.
    explicit trace_file(const char* path) noexcept;
    trace_file(const trace_file&) = delete;
    trace_file& operator=(const trace_file&) = delete;
    ~trace_file() { close(); }

    /// Returns a sink for an allocator whose name is `name`. At most 255 characters of the name are
    /// written.
    trace_channel channel(std::string_view name) noexcept;

    /// Adds an event. Channels call this function.
    void append(const mallard_trace_record& r) noexcept;

    /// Writes the buffer. Returns false if an event could not be written.
    bool flush() noexcept;

    /// Writes the last record and closes the file. Returns false if events are missing in the file.
    /// Events after this call are lost.
    bool close() noexcept;

    /// Returns the number of events that could not be written.
    std::uint64_t events_lost() const noexcept;

    /// Returns the `errno` of the last failure, or 0 if nothing failed. `last_failure` returns what
    /// to do, in one line that is never freed.
    int last_error() const noexcept;
    const char* last_failure() const noexcept; ///< see `last_error`

private:
    static constexpr std::size_t records_max = 500;

    // The caller of the functions below must hold the lock.
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
    int file_ = -1; // -1: closed, or never opened
    int error_ = 0;
    const char* failure_ = "";
    std::uint32_t pid_ = 0;
    std::uint32_t channels_ = 0;
    std::uint32_t thread_ = 0;  // the thread of the last record
    std::uint64_t offset_ = 0;  // where in the file the buffer will be written
    std::uint64_t records_ = 0; // number of records in the file and in the buffer
    std::uint64_t lost_ = 0;
    std::uint64_t lost_here_ = 0; // events lost since the last record
    std::size_t count_ = 0;
    mallard_trace_record buffer_[records_max];
};

inline void trace_channel::operator()(mallard_trace_record r) const noexcept
{
    r.stack = number_;
    file_->append(r);
}

} // namespace mallard
