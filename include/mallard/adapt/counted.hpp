// `counted`, an adaptor that counts calls, blocks and bytes; and `snapshot`, the counts and
// statistics of any allocator.
#pragma once

#include <mallard/adapt/adaptor.hpp>

#include <atomic>
#include <optional>

namespace mallard {

/// Counts of the calls to an allocator. Bytes are counted as the callers requested them, before any
/// rounding. A `reset` or `release` counts as a free of each live block.
///
///     mallard::call_counts const before = memory.counts();
///     parse(text, memory);
///     assert(memory.counts().since(before).is_balanced()); // no leak
struct call_counts {
    std::size_t allocations = 0;     ///< calls that returned a block
    std::size_t frees = 0;           ///< blocks that were freed
    std::size_t failures = 0;        ///< allocations that failed
    std::size_t bytes_allocated = 0; ///< bytes of all allocations
    std::size_t bytes_freed = 0;     ///< bytes of all frees
    std::size_t blocks_peak = 0;     ///< peak of the blocks in use
    /// Peak of the bytes in use. It may be reached at another time than `blocks_peak`.
    std::size_t bytes_peak = 0;

    /// Returns the number of blocks in use. The number is negative if a `counting_scope` counts
    /// more frees than allocations, because blocks from before the scope were freed.
    constexpr std::ptrdiff_t blocks_live() const noexcept
    {
        return static_cast<std::ptrdiff_t>(allocations - frees);
    }
    /// Returns the number of bytes in use, which may be negative as for `blocks_live`.
    constexpr std::ptrdiff_t bytes_live() const noexcept
    {
        return static_cast<std::ptrdiff_t>(bytes_allocated - bytes_freed);
    }

    /// Returns whether all blocks were freed, each with the size that was requested.
    constexpr bool is_balanced() const noexcept { return blocks_live() == 0 && bytes_live() == 0; }

    /// Returns the counts of the calls since `before` was read. The peaks are relative to the
    /// blocks and bytes that were in use at that time.
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

/// Maintains `call_counts`, for one thread at a time.
template <bool Shared>
class call_counter {
public:
    constexpr call_counter() noexcept = default;
    constexpr call_counter(call_counter&& other) noexcept : now_(std::exchange(other.now_, {})) {}
    constexpr call_counter& operator=(call_counter&& other) noexcept
    {
        now_ = std::exchange(other.now_, {});
        return *this;
    }

    /// Counts an allocation of `bytes` bytes, and raises the peaks.
    void count_allocation(std::size_t bytes) noexcept
    {
        now_.allocations += 1;
        now_.bytes_allocated += bytes;
        raise_peaks();
    }
    /// Counts a free of `bytes` bytes.
    void count_free(std::size_t bytes) noexcept
    {
        now_.frees += 1;
        now_.bytes_freed += bytes;
    }
    /// Counts a free of all live blocks.
    void count_free_all() noexcept
    {
        now_.frees = now_.allocations;
        now_.bytes_freed = now_.bytes_allocated;
    }
    void count_failure() noexcept { now_.failures += 1; } ///< counts an allocation that failed

    call_counts read() const noexcept { return now_; } ///< the counts since construction

    /// Starts a scope. Until the scope ends, the peaks cover only the scope. Returns the counts
    /// from before the scope, which the caller passes to `end_scope`.
    call_counts begin_scope() noexcept
    {
        call_counts const before = now_;
        now_.blocks_peak = now_.bytes_peak = 0;
        raise_peaks();
        return before;
    }
    /// Ends a scope that began with the counts `before`. Each peak becomes the maximum of the peak
    /// in the scope and the peak in `before`.
    void end_scope(const call_counts& before) noexcept
    {
        raise(now_.blocks_peak, before.blocks_peak);
        raise(now_.bytes_peak, before.bytes_peak);
    }

private:
    /// Raises `peak` to `to` if `to` is larger. Uses a branch, which is rarely taken, because a
    /// conditional move would write to memory in every call.
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

/// Maintains `call_counts` for any number of threads. An allocation and its free together cost six
/// atomic additions. The additions are relaxed, because no thread bases a decision on a count.
/// `read` is exact when no thread is inside a call.
///
/// A block is counted after the wrapped allocator has returned it, and subtracted before it is
/// returned to the wrapped allocator. So the live counts never exceed what the threads hold, and
/// each peak was really reached.
template <>
class alignas(false_sharing_bytes) call_counter<true> {
    using number = std::atomic<std::size_t>;
    static constexpr std::memory_order relaxed = std::memory_order_relaxed;

public:
    /// Counts an allocation of `bytes` bytes.
    void count_allocation(std::size_t bytes) noexcept
    {
        allocations_.fetch_add(1, relaxed);
        bytes_allocated_.fetch_add(bytes, relaxed);
        raise(blocks_peak_, blocks_live_.fetch_add(1, relaxed) + 1);
        raise(bytes_peak_, bytes_live_.fetch_add(bytes, relaxed) + bytes);
    }
    /// Counts a free of `bytes` bytes.
    void count_free(std::size_t bytes) noexcept
    {
        blocks_live_.fetch_sub(1, relaxed);
        bytes_live_.fetch_sub(bytes, relaxed);
    }
    /// Counts a failed allocation.
    void count_failure() noexcept { failures_.fetch_add(1, relaxed); }

    /// Counts a free of all live blocks. No other thread may be inside a call.
    void count_free_all() noexcept
    {
        blocks_live_.store(0, relaxed);
        bytes_live_.store(0, relaxed);
    }

    /// Returns the counts now.
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

    /// Starts a scope with new peaks. First sets the peaks to 0, then reads each live count once,
    /// and raises the peaks to these counts. If another thread raises a peak during this call, it
    /// raises the new peak. So no peak of the scope is below the count at the start of the scope.
    call_counts begin_scope() noexcept
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
    /// Ends a scope, like `end_scope` of the counter for one thread.
    void end_scope(const call_counts& before) noexcept
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

template <class Counted>
class counting_scope;

/// Returns whether the counters of an adaptor are atomic. They are atomic for `sync::lock_free`,
/// but not for `sync::none`. The choice does not change which threads may call the wrapped
/// allocator.
constexpr bool has_atomic_counters(sync threads) noexcept
{
    return threads == sync::lock_free;
}
/// The values of `sync` that `counted` and `limited` accept.
template <sync Threads>
concept sync_of_counters = Threads == sync::none || Threads == sync::lock_free;

/// Keeps exact counts of the calls to an allocator or source: allocations, frees, failures, bytes,
/// and the peaks of blocks and bytes in use. (The function `stats` of an allocator slows no call
/// down, but returns no totals and no peaks.) Adds 15 instructions to an allocation and 2 to a free
/// (see `tests/hot_path/hot_path.cpp`).
///
///     mallard::counted<mallard::multipool<>> memory;
///     ...
///     memory.counts().bytes_peak
///
/// Around an allocator, counts the bytes that the callers request. Around a chunk source, counts
/// the bytes that the source supplies, which may be more than requested.
///
/// Allocates nothing, and fails only when the wrapped object fails. A `counted<A>` is for one
/// thread at a time. A `counted<A, sync::lock_free>` allows the same concurrent calls as `A`, and
/// cannot be moved.
template <source Inner, sync Threads = sync::none>
    requires sync_of_counters<Threads>
class counted : public adaptor<counted<Inner, Threads>, Inner> {
    using base = adaptor<counted, Inner>;
    friend adaptor_access;
    friend class counting_scope<counted>;
    static constexpr bool shared = has_atomic_counters(Threads);

public:
    /// Whether any thread may call this object (see `shareable`).
    static constexpr bool any_thread = shared && shareable<Inner>;
    using base::base;

    /// Returns the counts since construction.
    call_counts counts() const noexcept { return counter_.read(); }

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        chunk const taken = base::template take_below_or<Throws>(
            l, [this]() noexcept { counter_.count_failure(); });
        if (Throws || taken.data != nullptr)
            counter_.count_allocation(taken.bytes);
        return taken;
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept
    {
        counter_.count_free(c.bytes);
        base::give_below(c);
    }
    void forget_all() noexcept { counter_.count_free_all(); }

    call_counter<shared> counter_;
};

/// Counts the calls to an allocator in one C++ scope, with separate peaks. Scopes nest. An outer
/// scope counts the calls of its inner scopes too, and an inner scope must end first. The idea is
/// from `push_counters` and `pop_counters` of RMM, the RAPIDS Memory Manager.
///
///     mallard::counting_scope parsing(memory);
///     parse(text, memory);
///     parsing.counts().bytes_peak // above the bytes in use before the scope
///
/// A scope costs nothing except at its start and end. With a shared `counted`, a scope counts the
/// calls of all threads.
template <class Counted>
class [[nodiscard]] counting_scope {
public:
    /// Starts a scope that counts the calls to the allocator `of`.
    [[nodiscard]] explicit counting_scope(Counted& of) noexcept
        : counter_(of.counter_), before_(counter_.begin_scope())
    {
    }
    ~counting_scope() { counter_.end_scope(before_); }
    counting_scope(const counting_scope&) = delete;
    counting_scope& operator=(const counting_scope&) = delete;

    /// Returns the counts since the start of the scope.
    call_counts counts() const noexcept { return counter_.read().since(before_); }

private:
    decltype(Counted::counter_)& counter_;
    call_counts before_;
};

/// The call counts of an allocator (if the allocator is `counted`) and its statistics (if the
/// allocator has `stats`), read at one moment. See `snapshot_of`.
///
/// The bytes in `calls` and `memory` may differ. For example, a 40-byte request to a pool of
/// 48-byte blocks is 40 bytes in `calls` and 48 bytes in `memory`.
struct snapshot {
    std::optional<call_counts> calls; ///< present if the allocator is `counted`
    std::optional<statistics> memory; ///< present if the allocator has `stats`

    constexpr snapshot() noexcept = default;
    /// Makes a snapshot that has only call counts.
    constexpr snapshot(const call_counts& asked) noexcept : calls(asked) {}
    /// Makes a snapshot that has only statistics.
    constexpr snapshot(const statistics& held) noexcept : memory(held) {}
    /// Makes a snapshot that has call counts and statistics.
    constexpr snapshot(const call_counts& asked, const statistics& held) noexcept
        : calls(asked), memory(held)
    {
    }
};

/// Returns a snapshot of any allocator or source, `counted` or not. Takes as long as `stats`, and
/// does not call a source.
///
///     mallard::snapshot const s = mallard::snapshot_of(orders);
template <class A>
snapshot snapshot_of(const A& a) noexcept
{
    snapshot s;
    if constexpr (counting<A>)
        s.calls = a.counts();
    if constexpr (measured<A>)
        s.memory = a.stats();
    return s;
}

} // namespace mallard
