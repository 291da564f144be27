// Reads trace files.
#pragma once

#include <mallard/detail/base/cxx20.hpp>
#include <mallard/trace/trace_format.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace mallard {

/// One event of a trace. The member `thread` comes from an earlier record.
struct trace_event {
    mallard_trace_op op;   ///< what happened
    std::uint64_t t;       ///< time, by the clock of the header
    std::uint64_t addr;    ///< the block; see mallard_trace_op
    std::uint64_t bytes;   ///< bytes of the block; for a name, its length
    std::uint64_t align;   ///< alignment of the block
    std::uint32_t stack;   ///< a call stack, or a traced allocator; see mallard_trace_op
    std::uint32_t dur;     ///< the duration of the call
    std::uint32_t thread;  ///< the calling thread
    unsigned flags;        ///< bits of mallard_trace_flag
    std::string_view name; ///< the text of a name, process, thread, module or memory record
    std::span<const std::byte> frames; ///< the return addresses of `stack`: see mallard_trace_fresh
};

/// Reads the events of a trace that is in memory, in the order of the file.
///
///     mallard::trace_reader trace(bytes);
///     while (auto event = trace.next())
///         ...
///     std::puts(trace.remark()); // empty if the trace is complete
///
/// If the bytes are not a trace of this version and byte order, the reader finds no events. If the
/// trace was truncated, the reader finds the events before the end. `remark` describes such errors.
/// Any bytes are safe to read, because each size is compared with the number of bytes that are
/// left. Allocates nothing. Names point into `bytes`, so `bytes` must outlive them.
class trace_reader {
public:
    /// Reads the header of a trace in `bytes`.
    explicit trace_reader(std::span<const std::byte> bytes) noexcept : rest_(bytes)
    {
        remark_ = failure_of(bytes);
        if (*remark_ == '\0')
            rest_ = bytes.subspan(header_.header_bytes);
        else
            rest_ = {};
        is_readable_ = *remark_ == '\0';
    }

    /// Returns whether the bytes are a trace that this reader can read. If not, `remark` returns
    /// the reason.
    bool is_readable() const noexcept { return is_readable_; }

    /// Returns whether the last record was read, and no record before it is missing.
    bool is_whole() const noexcept { return is_at_end_ && *remark_ == '\0'; }

    /// Returns, as one line that is never freed, what is wrong with the part of the trace that was
    /// read so far.
    const char* remark() const noexcept { return remark_; }

    /// Returns the header of the trace.
    const mallard_trace_header& header() const noexcept { return header_; }

    /// Returns the next event, or nothing after the last event. Skips records of unknown kinds.
    /// Records of threads, names and lost events are returned as events too.
    std::optional<trace_event> next() noexcept
    {
        for (;;) {
            std::optional<mallard_trace_record> const r = take_record();
            if (!r || !take_meaning(*r))
                return {};
            if (is_known(event_.op))
                return event_;
        }
    }

private:
    static constexpr std::size_t record_bytes = sizeof(mallard_trace_record);

    /// Returns the reason why the header cannot be read, or "". Tests the fields in the order in
    /// which they can be trusted.
    const char* failure_of(std::span<const std::byte> bytes) noexcept
    {
        static constexpr unsigned char magic[] = {0x89, 'M', 'T', 'R', 'A', 'C', 'E', '\n'};
        if (bytes.size() < sizeof header_)
            return "not a trace: the file is shorter than a trace header";
        std::memcpy(&header_, bytes.data(), sizeof header_);
        if (std::memcmp(header_.magic, magic, sizeof magic) != 0)
            return "not a trace: the first bytes are not those of a trace";
        if (header_.byte_order != mallard_trace_byte_order)
            return "the trace is of a machine with the other byte order: read it on such a machine";
        if (header_.version != mallard_trace_version)
            return "the trace has another version than 1: read it with the mallard that wrote it";
        if (header_.record_bytes != record_bytes || header_.header_bytes < sizeof header_ ||
            header_.header_bytes > bytes.size())
            return "the trace is corrupt: its header contradicts itself";
        return "";
    }

    /// Returns a copy of the next record. The record is copied because `bytes` may be unaligned.
    std::optional<mallard_trace_record> take_record() noexcept
    {
        if (is_at_end_ || rest_.empty()) {
            if (!is_at_end_ && is_readable_ && *remark_ == '\0')
                remark_ = "the trace has no end: its writer was killed or the disk was full; "
                          "the records before that are valid";
            return {};
        }
        if (rest_.size() < record_bytes) {
            rest_ = {};
            remark_ = "the trace ends inside a record: the records before that are valid";
            return {};
        }
        mallard_trace_record r;
        std::memcpy(&r, rest_.data(), record_bytes);
        rest_ = rest_.subspan(record_bytes);
        read_ += 1;
        return r;
    }

    /// Converts the record `r` to `event_`. Returns false if bytes that belong to the record are
    /// missing.
    bool take_meaning(const mallard_trace_record& r) noexcept
    {
        event_ = {.op = static_cast<mallard_trace_op>(mallard_trace_op_of(r.what)),
                  .t = r.t,
                  .addr = r.addr,
                  .bytes = mallard_trace_size(r.what),
                  .align = std::uint64_t{1} << mallard_trace_align_log2(r.what),
                  .stack = r.stack,
                  .dur = r.dur,
                  .thread = event_.thread,
                  .flags = mallard_trace_flags(r.what),
                  .name = {},
                  .frames = {}};
        if (mallard_trace_is_family(event_.op) != 0)
            return take_frames();
        if (mallard_trace_has_text(event_.op) != 0)
            return take_name();
        switch (event_.op) {
        case mallard_trace_thread:
            event_.thread = static_cast<std::uint32_t>(r.addr);
            return true;
        case mallard_trace_end:
            is_at_end_ = true;
            if (event_.addr != read_ - 1)
                remark_ = "the trace is corrupt: records are missing in the middle";
            else if (event_.bytes != 0)
                remark_ = "events are missing in the trace: its writer had no room for them";
            return true;
        default:
            return true;
        }
    }

    bool take_name() noexcept
    {
        std::optional const text = take_bytes(event_.bytes);
        if (!text) {
            remark_ = "the trace ends inside a name: the records before that are valid";
            return false;
        }
        event_.name = {reinterpret_cast<const char*>(text->data()), text->size()};
        return true;
    }

    bool take_frames() noexcept
    {
        std::optional const frames =
            take_bytes(mallard_trace_fresh(event_.stack) * sizeof event_.t);
        if (!frames)
            remark_ = "the trace ends inside a call stack: the records before that are valid";
        event_.frames = frames.value_or(std::span<const std::byte>());
        return frames.has_value();
    }

    /// Returns the next `bytes` bytes, which fill whole records, or nothing if fewer bytes are
    /// left.
    std::optional<std::span<const std::byte>> take_bytes(std::uint64_t bytes) noexcept
    {
        std::uint64_t const records = (bytes + record_bytes - 1) / record_bytes;
        if (rest_.size() / record_bytes < records) {
            rest_ = rest_.first(0);
            return {};
        }
        std::span const found = rest_.first(bytes);
        rest_ = rest_.subspan(records * record_bytes);
        read_ += records;
        return found;
    }

    // Returns whether this reader knows the kind of record. A later writer may add kinds of records
    // without a new version.
    static bool is_known(mallard_trace_op op) noexcept
    {
        return (op >= mallard_trace_allocate && op <= mallard_trace_reset) ||
               mallard_trace_is_family(op) != 0 ||
               (op >= mallard_trace_module && op <= mallard_trace_region_name) ||
               (op >= mallard_trace_thread && op <= mallard_trace_end);
    }

    std::span<const std::byte> rest_;
    const char* remark_ = "";
    mallard_trace_header header_{};
    trace_event event_{};
    std::uint64_t read_ = 0;
    bool is_readable_ = false;
    bool is_at_end_ = false;
};

} // namespace mallard
