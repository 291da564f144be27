// Reads traces.
#pragma once

#include <mallard/detail/base/cxx20.hpp>
#include <mallard/trace/trace_format.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace mallard {

/// One thing that happened, with what the records before it said.
struct trace_event {
    mallard_trace_op op;
    std::uint64_t t;
    std::uint64_t addr;
    std::uint64_t bytes; ///< of a name: its characters
    std::uint64_t align;
    std::uint32_t stack;
    std::uint32_t dur;
    std::uint32_t thread;
    unsigned flags;        ///< mallard_trace_flag
    std::string_view name; ///< of a mallard_trace_name
};

/// The events of a trace in memory, in their order.
///
///     mallard::trace_reader trace(bytes);
///     while (auto event = trace.next())
///         ...
///     std::puts(trace.remark()); // empty, if the trace is whole
///
/// What is no trace, or one of another version or byte order, has no events; a trace
/// that was cut short has those before the cut. `remark` says so. Any bytes may be
/// read: no size in them is believed before it is compared with what is there.
/// Allocates nothing; names are in `bytes`, which stay alive as long as they are used.
class trace_reader {
public:
    explicit trace_reader(std::span<const std::byte> bytes) noexcept : rest_(bytes)
    {
        remark_ = refusal_of(bytes);
        if (*remark_ == '\0')
            rest_ = bytes.subspan(header_.header_bytes);
        else
            rest_ = {};
        is_readable_ = *remark_ == '\0';
    }

    /// Whether it is a trace that this can read; else `remark` says why not.
    bool is_readable() const noexcept { return is_readable_; }

    /// Whether the end was read, and nothing is missing before it.
    bool is_whole() const noexcept { return is_at_end_ && *remark_ == '\0'; }

    /// What is wrong with the trace, as far as it was read, in one line that lives for ever.
    const char* remark() const noexcept { return remark_; }

    const mallard_trace_header& header() const noexcept { return header_; }

    /// Nothing after the last. Records that it does not know are skipped, those of
    /// threads, names and losses are events too.
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

    /// In the order in which a field can be trusted.
    const char* refusal_of(std::span<const std::byte> bytes) noexcept
    {
        static constexpr unsigned char magic[] = {0x89, 'M', 'T', 'R', 'A', 'C', 'E', '\n'};
        if (bytes.size() < sizeof header_)
            return "not a trace: it is shorter than a header";
        std::memcpy(&header_, bytes.data(), sizeof header_);
        if (std::memcmp(header_.magic, magic, sizeof magic) != 0)
            return "not a trace: it does not begin as one";
        if (header_.byte_order != mallard_trace_byte_order)
            return "the trace is of a machine with the other byte order: read it there";
        if (header_.version != mallard_trace_version)
            return "the trace is of another version than 1: read it with the mallard that wrote it";
        if (header_.record_bytes != record_bytes || header_.header_bytes < sizeof header_ ||
            header_.header_bytes > bytes.size())
            return "the trace is damaged: its header contradicts itself";
        return "";
    }

    /// Copied, since nothing says that `bytes` are aligned.
    std::optional<mallard_trace_record> take_record() noexcept
    {
        if (is_at_end_ || rest_.empty()) {
            if (!is_at_end_ && is_readable_ && *remark_ == '\0')
                remark_ = "the trace has no end: its writer was killed or had no room; "
                          "it is whole up to there";
            return {};
        }
        if (rest_.size() < record_bytes) {
            rest_ = {};
            remark_ = "the trace ends inside a record: it is whole up to there";
            return {};
        }
        mallard_trace_record r;
        std::memcpy(&r, rest_.data(), record_bytes);
        rest_ = rest_.subspan(record_bytes);
        read_ += 1;
        return r;
    }

    /// False if what belongs to it is cut off.
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
                  .name = {}};
        switch (event_.op) {
        case mallard_trace_thread:
            event_.thread = static_cast<std::uint32_t>(r.addr);
            return true;
        case mallard_trace_name:
            return take_name();
        case mallard_trace_end:
            is_at_end_ = true;
            if (event_.addr != read_ - 1)
                remark_ = "the trace is damaged: records are missing in the middle";
            else if (event_.bytes != 0)
                remark_ = "events are missing in the trace: its writer had no room for them";
            return true;
        default:
            return true;
        }
    }

    bool take_name() noexcept
    {
        std::uint64_t const records = (event_.bytes + record_bytes - 1) / record_bytes;
        if (rest_.size() / record_bytes < records) {
            rest_ = rest_.first(0);
            remark_ = "the trace ends inside a name: it is whole up to there";
            return false;
        }
        event_.name = {reinterpret_cast<const char*>(rest_.data()), event_.bytes};
        rest_ = rest_.subspan(records * record_bytes);
        read_ += records;
        return true;
    }

    // Others are of a later writer, who may add some without a new version.
    static bool is_known(mallard_trace_op op) noexcept
    {
        return (op >= mallard_trace_allocate && op <= mallard_trace_reset) ||
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
