// An op stream (a file with the calls of a recorded program), and the windows (buffers) into which
// its ops are read.
#pragma once

#include "memory.hpp"

#include <mallard/trace/replay_format.h>

#include <cstdarg>
#include <mutex>

namespace mallard::replay {

using op = mallard_replay_op;

/// `handler_of` is below this number for ops of target 0 (malloc).
constexpr std::uint64_t handlers_of_malloc = 32;

/// Returns the kind and the target of an op as one number.
inline std::uint64_t handler_of(op const& o) noexcept
{
    return o.what >> mallard_replay_op_shift;
}

/// The binary logarithm of the largest alignment in an op.
constexpr unsigned align_log2_max = 30;
/// The largest rule number.
constexpr std::uint32_t rule_max = 65535;

/// An open op stream whose header and tables are in memory. Every offset in them is within the
/// file, and the checksum is correct.
class stream {
public:
    /// Opens and checks a file. Ends the process with a message if that fails.
    explicit stream(const char* path) noexcept;

    const char* path() const noexcept { return path_; }
    mallard_replay_header const& header() const noexcept { return header_; }
    table<mallard_replay_thread> const& threads() const noexcept { return threads_; }
    table<mallard_replay_target> const& targets() const noexcept { return targets_; }
    /// Returns the size of the tables in bytes.
    std::size_t table_bytes() const noexcept { return threads_.bytes() + targets_.bytes(); }

    /// Reads bytes of the file. Ends the process if that fails.
    void read(void* into, std::size_t bytes, std::uint64_t offset) const noexcept;

    /// Ends the process with the message that the file is corrupt. `format` and its arguments
    /// describe the error.
    [[noreturn, gnu::format(printf, 2, 3)]] void damaged(const char* format, ...) const noexcept;

    /// Ends the process with the message that an op depends on an op of another thread, but does
    /// not wait for that op. `format` and its arguments describe the op.
    [[noreturn, gnu::format(printf, 2, 3)]] void lacks_edge(const char* format, ...) const noexcept;

private:
    /// Ends the process with a message that consists of `before`, the path, `after`, and a
    /// description of the error from `format`.
    [[noreturn, gnu::format(printf, 4, 0)]] void refuse(const char* before, const char* after,
                                                        const char* format,
                                                        va_list arguments) const noexcept;
    void check_header(std::uint64_t bytes) const noexcept;
    void check_threads(std::uint64_t bytes) const noexcept;
    void check_targets() const noexcept;
    void check_sum(std::uint64_t bytes) const noexcept;

    const char* path_;
    int file_;
    mallard_replay_header header_{};
    table<mallard_replay_thread> threads_;
    table<mallard_replay_target> targets_;
};

/// The kind of a sentinel op after the last op of a window. No file contains this kind. Because of
/// the sentinel, the loop of a thread need not test for the end of the window.
constexpr unsigned window_end = 31;

/// A buffer into which ops of one thread are read. With --no-op, the page after the buffer serves
/// as the block of all allocations.
struct window {
    op* ops = nullptr; ///< room for `windows::ops_max()` ops and the sentinel `window_end`

    explicit operator bool() const noexcept { return ops != nullptr; }
};

/// The windows of all running threads. Windows of threads that have exited are reused. Any thread
/// may call the member functions.
class windows {
public:
    /// Chooses the size of the windows, which is smaller if the stream has many threads.
    explicit windows(std::size_t threads) noexcept
        : bytes_(threads <= 256 ? std::size_t{1} << 16 : std::size_t{1} << 12)
    {
    }

    window take() noexcept;          ///< returns a window whose pages were touched
    void give(window idle) noexcept; ///< frees a window, which may be reused

    std::size_t ops_max() const noexcept { return bytes_ / sizeof(op) - 1; }
    /// Returns the page after a window.
    std::byte* page_of(window of) const noexcept
    {
        return reinterpret_cast<std::byte*>(of.ops) + bytes_;
    }
    /// Returns the size of all windows in bytes, both in use and idle.
    std::size_t bytes() const noexcept { return mapped_; }

private:
    /// The first word of an idle window contains the address of the next idle window.
    struct idle_window {
        idle_window* next;
    };

    std::size_t bytes_;
    std::size_t mapped_ = 0;
    idle_window* idle_ = nullptr;
    std::mutex lock_;
};

/// Reads the ops of a thread in order.
struct reader {
    std::uint64_t offset = 0; ///< file offset of the next ops
    std::uint64_t left = 0;   ///< number of ops that are left in the file
    window into{};
    op const* end = nullptr; ///< after the last op in the window

    /// Makes a reader that starts at the first op of a thread.
    static reader of(mallard_replay_thread const& t, window into) noexcept
    {
        return {t.offset, t.ops, into, nullptr};
    }

    /// Reads the next ops into the window, and returns a pointer to the first of them.
    op const* refill(stream const& from, std::size_t ops_max) noexcept
    {
        std::size_t const count = left < ops_max ? static_cast<std::size_t>(left) : ops_max;
        from.read(into.ops, count * sizeof(op), offset);
        end = into.ops + count;
        into.ops[count] = {mallard_replay_pack(0, 0, window_end, 0), 0, 0};
        offset += count * sizeof(op);
        left -= count;
        return into.ops;
    }
};

} // namespace mallard::replay
