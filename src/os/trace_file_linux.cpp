// Writes trace files. pwrite writes whole records at known offsets, so that a short write can be
// repeated from the correct record.
#include <mallard/trace/trace_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace mallard {
namespace {

constexpr std::size_t record_bytes = sizeof(mallard_trace_record);
static_assert(record_bytes == 32 && sizeof(mallard_trace_header) == 64);

constexpr std::size_t name_max = 255;
constexpr std::uint64_t events_between_tries = 512;

const char* why(int error) noexcept
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "the disk is full: events are lost until there is room: see `df`";
    case EFBIG:
        return "the file has reached the size limit of this process: see `ulimit -f`";
    case ENOENT:
    case ENOTDIR:
        return "the directory of the trace does not exist: create it with `mkdir -p`";
    case EACCES:
    case EPERM:
    case EROFS:
        return "the process may not write the trace there: choose another directory";
    case EISDIR:
        return "the path of the trace is a directory: name a file in it";
    case EMFILE:
    case ENFILE:
        return "too many files are open: see `ulimit -n`";
    default:
        return "the system cannot write the trace: last_error() is its errno";
    }
}

std::uint32_t process_id() noexcept
{
    return static_cast<std::uint32_t>(::getpid());
}

std::uint32_t thread_id() noexcept
{
    constinit static thread_local std::uint32_t mine = 0;
    if (mine == 0)
        mine = static_cast<std::uint32_t>(::gettid());
    return mine;
}

/// Writes data at an offset, and returns the number of bytes written. If that number is less than
/// `bytes`, errno contains the reason.
std::size_t write_at(int file, std::uint64_t offset, const void* data, std::size_t bytes) noexcept
{
    std::size_t done = 0;
    while (done < bytes) {
        ssize_t const more = ::pwrite(file, static_cast<const char*>(data) + done, bytes - done,
                                      static_cast<off_t>(offset + done));
        if (more > 0)
            done += static_cast<std::size_t>(more);
        else if (more == 0 || errno != EINTR)
            break;
    }
    return done;
}

mallard_trace_record record_of(mallard_trace_op op, std::uint64_t addr, std::uint64_t size,
                               std::uint32_t stack) noexcept
{
    return {.t = trace_now(),
            .addr = addr,
            .what = mallard_trace_pack(size, 0, op, 0),
            .stack = stack,
            .dur = 0};
}

} // namespace

trace_file::trace_file(const char* path) noexcept : pid_(process_id())
{
    using namespace std::chrono;
    auto const unix_time = duration_cast<nanoseconds>(system_clock::now().time_since_epoch());
    mallard_trace_header const header{
        .magic = {0x89, 'M', 'T', 'R', 'A', 'C', 'E', '\n'},
        .byte_order = mallard_trace_byte_order,
        .version = mallard_trace_version,
        .header_bytes = sizeof header,
        .record_bytes = record_bytes,
        .clock_hz = 1'000'000'000,
        .start = trace_now(),
        .start_unix = static_cast<std::uint64_t>(unix_time.count()),
        .clock = mallard_trace_clock_monotonic,
        .pid = pid_,
        .sample_bytes = 0,
    };
    file_ = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file_ < 0) {
        refuse(errno);
    } else if (write_at(file_, 0, &header, sizeof header) != sizeof header) {
        refuse(errno); // a file without a header cannot be read
        ::close(file_);
        file_ = -1;
    }
    offset_ = sizeof header;
}

trace_channel trace_file::channel(std::string_view name) noexcept
{
    std::lock_guard const alone(lock_);
    std::size_t const bytes = std::min(name.size(), name_max);
    std::size_t const records = (bytes + record_bytes - 1) / record_bytes;
    std::uint32_t const number = ++channels_;
    if (has_room(1 + records)) {
        put(record_of(mallard_trace_name, 0, bytes, number));
        for (std::size_t at = 0; at < bytes; at += record_bytes) {
            mallard_trace_record text{};
            std::memcpy(&text, name.data() + at, std::min(record_bytes, bytes - at));
            put(text);
        }
    }
    return {*this, number};
}

void trace_file::append(const mallard_trace_record& r) noexcept
{
    std::uint32_t const thread = thread_id();
    std::lock_guard const alone(lock_);
    // An event needs at most three records, for lost events, for the thread and for the event.
    if (file_ < 0 || !has_room(3)) {
        lost_ += 1;
        lost_here_ += 1;
        return;
    }
    put_lost();
    if (thread != thread_) {
        put(record_of(mallard_trace_thread, thread, 0, 0));
        thread_ = thread;
    }
    put(r);
}

void trace_file::put_lost() noexcept
{
    if (lost_here_ == 0)
        return;
    put(record_of(mallard_trace_lost, 0, lost_here_, 0));
    lost_here_ = 0;
}

/// Returns whether the buffer has room for `records`. If the buffer is full, writes it to the file
/// first. After a failed write, tries again each time that `events_between_tries` more events were
/// lost.
bool trace_file::has_room(std::size_t records) noexcept
{
    if (records_max - count_ >= records)
        return true;
    if (lost_here_ % events_between_tries == 0)
        write_all();
    return records_max - count_ >= records;
}

bool trace_file::flush() noexcept
{
    std::lock_guard const alone(lock_);
    return write_all();
}

bool trace_file::write_all() noexcept
{
    if (file_ < 0)
        return false;
    if (process_id() != pid_) { // in a forked child; the parent writes the buffer
        ::close(file_);
        file_ = -1;
        return false;
    }
    std::size_t const wanted = count_ * record_bytes;
    std::size_t const written = write_at(file_, offset_, buffer_, wanted);
    if (written < wanted)
        refuse(errno);
    std::size_t const whole = written / record_bytes;
    offset_ += whole * record_bytes;
    count_ -= whole;
    std::memmove(buffer_, buffer_ + whole, count_ * record_bytes);
    return count_ == 0;
}

bool trace_file::close() noexcept
{
    std::lock_guard const alone(lock_);
    if (file_ < 0)
        return false;
    bool whole = write_all();
    if (whole) {
        put_lost();
        put(record_of(mallard_trace_end, records_, lost_, 0));
        whole = write_all() && lost_ == 0;
    }
    if (file_ >= 0 && ::close(file_) != 0)
        whole = refuse(errno);
    file_ = -1;
    return whole;
}

std::uint64_t trace_file::events_lost() const noexcept
{
    std::lock_guard const alone(lock_);
    return lost_;
}

int trace_file::last_error() const noexcept
{
    std::lock_guard const alone(lock_);
    return error_;
}

const char* trace_file::last_failure() const noexcept
{
    std::lock_guard const alone(lock_);
    return failure_;
}

bool trace_file::refuse(int error) noexcept
{
    error_ = error;
    failure_ = why(error);
    return false;
}

} // namespace mallard
