// An op stream in a file, and the windows through which its ops are read.
#pragma once

#include "memory.hpp"

#include <mallard/trace/replay_format.h>

#include <cstdarg>
#include <mutex>

namespace mallard::replay {

using op = mallard_replay_op;

/// `handler_of` is below this number for ops of target 0, which is malloc.
constexpr std::uint64_t handlers_of_malloc = 32;

/// The kind and the target of an op as one number.
inline std::uint64_t handler_of(op const& o) noexcept
{
    return o.what >> mallard_replay_op_shift;
}

/// The largest alignment of an op, as an exponent.
constexpr unsigned align_log2_max = 30;
/// The largest number of a rule.
constexpr std::uint32_t rule_max = 65535;

/// An open op stream whose header and tables are in memory. Every offset in them is inside the
/// file, and the checksum is right.
class stream {
public:
    /// Opens a file, or ends the process with a message.
    explicit stream(const char* path) noexcept;

    const char* path() const noexcept { return path_; }
    mallard_replay_header const& header() const noexcept { return header_; }
    table<mallard_replay_thread> const& threads() const noexcept { return threads_; }
    table<mallard_replay_target> const& targets() const noexcept { return targets_; }
    /// The bytes of the tables.
    std::size_t table_bytes() const noexcept { return threads_.bytes() + targets_.bytes(); }

    /// Reads bytes of the file, or ends the process.
    void read(void* into, std::size_t bytes, std::uint64_t offset) const noexcept;

    /// Ends the process: the file is damaged, in the way that `format` and its arguments say.
    [[noreturn, gnu::format(printf, 2, 3)]] void damaged(const char* format, ...) const noexcept;

    /// Ends the process: an op needs an op of another thread, but does not wait for it. `format`
    /// and its arguments say which op.
    [[noreturn, gnu::format(printf, 2, 3)]] void lacks_edge(const char* format, ...) const noexcept;

private:
    /// Ends the process with a message: `before`, the path, `after`, and what is wrong.
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

/// The kind of the op behind the last op of a window. No file has this kind. This op saves the loop
/// of a thread a test for the end of the window.
constexpr unsigned window_end = 31;

/// Memory into which ops of one thread are read. The page after it serves as the block of all
/// allocations with --no-op.
struct window {
    op* ops = nullptr; ///< room for `windows::ops_max()` ops and an op of the kind window_end

    explicit operator bool() const noexcept { return ops != nullptr; }
};

/// The windows of all threads that exist. Windows of threads that have ended are used again. Any
/// thread may call the members.
class windows {
public:
    /// Makes windows for the threads of a stream: small ones if there are many threads.
    explicit windows(std::size_t threads) noexcept
        : bytes_(threads <= 256 ? std::size_t{1} << 16 : std::size_t{1} << 12)
    {
    }

    window take() noexcept;          ///< a window whose pages are faulted in
    void give(window idle) noexcept; ///< returns a window, which may be taken again

    std::size_t ops_max() const noexcept { return bytes_ / sizeof(op) - 1; }
    /// The page behind a window.
    std::byte* page_of(window of) const noexcept
    {
        return reinterpret_cast<std::byte*>(of.ops) + bytes_;
    }
    /// The bytes of all windows, in use and idle.
    std::size_t bytes() const noexcept { return mapped_; }

private:
    /// An idle window has the address of the next one in its first word.
    struct idle_window {
        idle_window* next;
    };

    std::size_t bytes_;
    std::size_t mapped_ = 0;
    idle_window* idle_ = nullptr;
    std::mutex lock_;
};

/// The position of a thread in its ops.
struct reader {
    std::uint64_t offset = 0; ///< where the next ops are in the file
    std::uint64_t left = 0;   ///< how many ops are left there
    window into{};
    op const* end = nullptr; ///< behind the last op in the window

    /// A reader at the first op of a thread.
    static reader of(mallard_replay_thread const& t, window into) noexcept
    {
        return {t.offset, t.ops, into, nullptr};
    }

    /// Reads the next ops into the window, and returns the first of them.
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
