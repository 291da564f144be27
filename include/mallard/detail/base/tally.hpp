// What an allocator was asked for, by one thread or by several.
#pragma once

#include <mallard/detail/base/bits.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace mallard {

/// Calls, and bytes as the callers said them. A block that goes with a `reset` or a
/// `release` is freed then.
struct call_counts {
    std::size_t allocations = 0;     ///< that gave a block
    std::size_t frees = 0;           ///< of blocks
    std::size_t failures = 0;        ///< that gave none
    std::size_t bytes_allocated = 0; ///< ever
    std::size_t bytes_freed = 0;
    std::size_t blocks_peak = 0; ///< most in use at once
    std::size_t bytes_peak = 0;  ///< most in use at once, perhaps not at that moment

    /// In use. Negative for a stretch of a program that freed what was older.
    constexpr std::ptrdiff_t blocks_live() const noexcept
    {
        return static_cast<std::ptrdiff_t>(allocations - frees);
    }
    constexpr std::ptrdiff_t bytes_live() const noexcept
    {
        return static_cast<std::ptrdiff_t>(bytes_allocated - bytes_freed);
    }

    /// All that was allocated was freed, each with the size that was asked for.
    constexpr bool is_balanced() const noexcept { return blocks_live() == 0 && bytes_live() == 0; }

    /// Of what came after `before`; peaks are above what was live then.
    constexpr call_counts since(const call_counts& before) const noexcept
    {
        call_counts c = *this;
        c.allocations -= before.allocations;
        c.frees -= before.frees;
        c.failures -= before.failures;
        c.bytes_allocated -= before.bytes_allocated;
        c.bytes_freed -= before.bytes_freed;
        c.blocks_peak -= static_cast<std::size_t>(before.blocks_live());
        c.bytes_peak -= static_cast<std::size_t>(before.bytes_live());
        return c;
    }

    friend constexpr bool operator==(const call_counts&, const call_counts&) = default;
};

/// Keeps `call_counts`.
template <bool Shared>
class tally {
public:
    constexpr tally() noexcept = default;
    constexpr tally(tally&& other) noexcept : now_(std::exchange(other.now_, {})) {}
    constexpr tally& operator=(tally&& other) noexcept
    {
        now_ = std::exchange(other.now_, {});
        return *this;
    }

    void took(std::size_t bytes) noexcept
    {
        now_.allocations += 1;
        now_.bytes_allocated += bytes;
        raise_peaks();
    }
    void gave(std::size_t bytes) noexcept
    {
        now_.frees += 1;
        now_.bytes_freed += bytes;
    }
    void gave_all() noexcept
    {
        now_.frees = now_.allocations;
        now_.bytes_freed = now_.bytes_allocated;
    }
    void failed() noexcept { now_.failures += 1; }

    call_counts read() const noexcept { return now_; }

    /// From here on the peaks are those of a stretch. Gives what was before.
    call_counts begin_stretch() noexcept
    {
        call_counts const before = now_;
        now_.blocks_peak = now_.bytes_peak = 0;
        raise_peaks();
        return before;
    }
    void end_stretch(const call_counts& before) noexcept
    {
        raise(now_.blocks_peak, before.blocks_peak);
        raise(now_.bytes_peak, before.bytes_peak);
    }

private:
    /// By a jump that is rarely taken: a conditional move would store each time.
    static void raise(std::size_t& peak, std::size_t to) noexcept
    {
        if (peak < to) [[unlikely]]
            peak = to;
    }
    void raise_peaks() noexcept
    {
        raise(now_.blocks_peak, now_.allocations - now_.frees);
        raise(now_.bytes_peak, now_.bytes_allocated - now_.bytes_freed);
    }

    call_counts now_;
};

/// For any number of threads. Six atomic additions for a block's life; nothing is
/// ordered by them, since nobody acts on a count. What a thread does between two
/// of them shows: a reading is exact when no thread is inside a call.
///
/// A block counts from after it is taken until before it is given, so live never
/// exceeds what the threads hold, and a peak is one that there was.
template <>
class alignas(cache_line_bytes) tally<true> {
    using number = std::atomic<std::size_t>;
    static constexpr std::memory_order relaxed = std::memory_order_relaxed;

public:
    void took(std::size_t bytes) noexcept
    {
        allocations_.fetch_add(1, relaxed);
        bytes_allocated_.fetch_add(bytes, relaxed);
        raise(blocks_peak_, blocks_live_.fetch_add(1, relaxed) + 1);
        raise(bytes_peak_, bytes_live_.fetch_add(bytes, relaxed) + bytes);
    }
    void gave(std::size_t bytes) noexcept
    {
        blocks_live_.fetch_sub(1, relaxed);
        bytes_live_.fetch_sub(bytes, relaxed);
    }
    void failed() noexcept { failures_.fetch_add(1, relaxed); }

    /// While no other thread is inside a call.
    void gave_all() noexcept
    {
        blocks_live_.store(0, relaxed);
        bytes_live_.store(0, relaxed);
    }

    call_counts read() const noexcept
    {
        call_counts now;
        now.allocations = allocations_.load(relaxed);
        now.frees = now.allocations - blocks_live_.load(relaxed);
        now.failures = failures_.load(relaxed);
        now.bytes_allocated = bytes_allocated_.load(relaxed);
        now.bytes_freed = now.bytes_allocated - bytes_live_.load(relaxed);
        now.blocks_peak = blocks_peak_.load(relaxed);
        now.bytes_peak = bytes_peak_.load(relaxed);
        return now;
    }

    /// Live is read once, after the peak is taken away: whoever raises that in between
    /// raises the new one, and no peak of the stretch is below where it began.
    call_counts begin_stretch() noexcept
    {
        call_counts before = read();
        before.blocks_peak = blocks_peak_.exchange(0, relaxed);
        before.bytes_peak = bytes_peak_.exchange(0, relaxed);
        std::size_t const blocks = blocks_live_.load(relaxed);
        std::size_t const bytes = bytes_live_.load(relaxed);
        before.frees = before.allocations - blocks;
        before.bytes_freed = before.bytes_allocated - bytes;
        raise(blocks_peak_, blocks);
        raise(bytes_peak_, bytes);
        return before;
    }
    void end_stretch(const call_counts& before) noexcept
    {
        raise(blocks_peak_, before.blocks_peak);
        raise(bytes_peak_, before.bytes_peak);
    }

private:
    static void raise(number& peak, std::size_t to) noexcept
    {
        std::size_t known = peak.load(relaxed);
        while (known < to && !peak.compare_exchange_weak(known, to, relaxed)) {}
    }

    number allocations_{0};
    number bytes_allocated_{0};
    number blocks_live_{0};
    number bytes_live_{0};
    number blocks_peak_{0};
    number bytes_peak_{0};
    number failures_{0};
};

} // namespace mallard
