// The state of a thread, and the functions with which the hooks append an event.
//
// A hook calls `enter`, which returns null if the event is not to be recorded. Otherwise the hook
// calls `append` and, at the end of the call, `leave`:
//
//     malloc:  enter, next.malloc, append, leave
//     free:    enter, append, leave, next.free
//
// So a trace always has a free between two allocations of the same address (spec/trace_format.md).
#pragma once

#include "../os/ticks_linux.hpp"
#include "../os/unwind.hpp"
#include "ring.hpp"

#include <mallard/trace/trace_format.h>

#include <algorithm>
#include <utility>

namespace mallard::record {

/// The settings that the recorder reads from the ring. Constant after the process has attached to
/// the ring.
struct settings {
    ring_header* ring = nullptr;
    ring_segment* segments = nullptr;
    mallard_trace_record* records = nullptr;
    double sample_rate = 0; ///< 1 / mean bytes between sampled allocations; 0 to record all
    std::uint32_t time_mask = 0;
    bool samples = false;
    bool has_stacks = false;
    bool has_free_stacks = false;
    bool follows_fork = false;
    os::stack_mode mode = os::stack_mode::unwound;
    bool reads_counter = false;    ///< whether ticks are from the time stamp counter
    std::uint32_t clock_ticks = 0; ///< ticks that reading the clock adds to a duration
};
extern constinit settings the;

/// A page that the system clears in the child of a fork or clone (MADV_WIPEONFORK). `number` is the
/// number of this process, or 0 while the process is not attached to the ring. So the child is not
/// attached.
struct alignas(4096) process_page {
    std::atomic<std::uint32_t> number;
    std::atomic<std::uint32_t> is_attaching;
    std::atomic<std::uint32_t> text_is_in_use; ///< 1 while a thread writes the record of a module
    std::atomic<std::uint32_t> list_is_in_use; ///< 1 while a thread changes the list of threads
};
extern constinit process_page this_process;

enum activity : std::uint8_t {
    /// The thread is in a resolver of an indirect function (ifunc). The loader runs resolvers while
    /// it relocates the program, and copies the initial values of thread-local variables after
    /// that.
    in_relocation,
    in_program,
    in_call,  ///< in the next allocator, or in the recorder outside of `append`
    in_write, ///< inside `append`
};

constexpr std::uint32_t no_process = ~std::uint32_t{0};

/// The value of `thread_state::process` if an earlier command recorded the thread.
constexpr std::uint32_t earlier_process = no_process - 1;

/// The state of one thread. The type is trivially destructible, so that the last frees of an
/// exiting thread can still use the state.
struct thread_state {
    std::atomic<activity> now{in_program};
    std::uint32_t process =
        no_process;           ///< differs from `this_process` until the thread has started, in the
                              ///< child of a fork, and after the thread has exited
    std::uint32_t calls = 0;  ///< number of allocations, some of which are timed
    std::uint32_t frees = 0;  ///< number of frees, some of which are timed
    std::uint32_t events = 0; ///< number of events appended so far
    mallard_trace_record* at = nullptr; ///< where the next record of the segment is written
    mallard_trace_record* end = nullptr;
    ring_segment* segment = nullptr; ///< null if the thread has no segment
    std::uint64_t from = 0; ///< `what` of the operator new or delete that calls the next hook

    os::stack_memory stack{}; ///< without frames before the thread starts and after it has exited

    double left = 0; ///< distance to the next sampled byte, as a fraction of the mean distance
    std::uint64_t random = 0;

    std::uint32_t number = 0;
    std::uint32_t sequence = 0;
    std::uint32_t ended_in = 0; ///< the process in which the thread has exited, or 0
    std::uint32_t system_thread = 0;
    std::uint32_t exit_rounds = 0; ///< how often the destructor of the thread's key has run
    thread_state* after = nullptr; ///< the next thread in the list, see `attach_running`
};
extern constinit thread_local thread_state this_thread;

thread_state* enter_slowly(thread_state& t) noexcept;
/// Does the same as `enter_slowly`, but for an `enter` that has already stored `in_call`.
thread_state* enter_again(thread_state& t) noexcept;
void leave_late(thread_state& t) noexcept;

/// The stack frame of a hook, with the base pointer of its caller and the return address.
using hook_frame = const std::uintptr_t*;

/// Appends one event. Must be called between `enter` and `leave`. `frame` is the frame of the hook,
/// whose caller's call stack is recorded. If `frame` is null, no call stack is recorded.
void append(thread_state& t, std::uint64_t when, const void* block, std::uint64_t what,
            std::uint64_t duration, hook_frame frame) noexcept;

/// Appends one event with the call stack of the thread's last event. Requires that the last event
/// was appended and not dropped.
void append_with_last_stack(thread_state& t, std::uint64_t when, const void* block,
                            std::uint64_t what, std::uint64_t duration) noexcept;

/// Appends a mark of a region. `op` is mallard_trace_region_begin or mallard_trace_region_end. Must
/// be called between `enter` and `leave`.
void append_mark(thread_state& t, unsigned op, const char* name, std::size_t bytes) noexcept;

/// Returns the state of the thread if an event of the thread is to be recorded now, otherwise null.
/// In a signal handler that interrupts a call, returns null until `leave` is called.
///
/// `now` is stored before `this_process` is read, so that `leave_ring` can wait for all threads
/// that may use the ring.
[[gnu::always_inline]] inline thread_state* enter() noexcept
{
    thread_state& t = this_thread;
    if (t.now.load(std::memory_order_relaxed) != in_program) [[unlikely]]
        return enter_slowly(t);
    t.now.store(in_call, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (t.process != this_process.number.load(std::memory_order_relaxed) ||
        the.ring->recording.load(std::memory_order_relaxed) == 0) [[unlikely]]
        return enter_again(t);
    return &t;
}

[[gnu::always_inline]] inline void leave(thread_state& t) noexcept
{
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (t.process == no_process) [[unlikely]]
        return leave_late(t);
    t.now.store(in_program, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline std::uint64_t ticks() noexcept
{
    return the.reads_counter ? os::ticks() : os::monotonic_ns();
}
[[gnu::always_inline]] inline std::uint64_t ticks_before() noexcept
{
    return the.reads_counter ? os::ticks_before() : os::monotonic_ns();
}
[[gnu::always_inline]] inline std::uint64_t ticks_after() noexcept
{
    return the.reads_counter ? os::ticks_after() : os::monotonic_ns();
}

/// Counts a call. Returns the current time if the call is one of those that are timed, otherwise 0.
[[gnu::always_inline]] inline std::uint64_t begin_of_call(thread_state& t) noexcept
{
    return (++t.calls & the.time_mask) == 0 ? ticks_before() : 0;
}

/// Returns what `begin_of_call` would return now, but does not count the call.
[[gnu::always_inline]] inline std::uint64_t begin_of_next_call(thread_state const& t) noexcept
{
    return ((t.calls + 1) & the.time_mask) == 0 ? ticks_before() : 0;
}

/// Returns the duration of a call, without the time for reading the clock. If `begin` is 0, the
/// call is not timed, and the result is 0. The duration of a timed call is at least one tick.
[[gnu::always_inline]] inline std::uint64_t duration(std::uint64_t begin,
                                                     std::uint64_t end) noexcept
{
    if (begin == 0) [[likely]]
        return 0;
    std::uint64_t const took = end - begin;
    return took > the.clock_ticks ? took - the.clock_ticks : 1;
}

/// Counts a free, and returns whether this free is one of those that are timed.
[[gnu::always_inline]] inline bool is_timed_free(thread_state& t) noexcept
{
    constexpr std::uint32_t timed_mask = 63;
    return (++t.frees & timed_mask) == 0;
}

/// Calls `real`, which frees, and adds the duration of the call to a sum in the ring. Limits the
/// duration to `ticks_max`, about a millisecond, because after a longer time another thread has
/// probably used the core. If the process forks during the call, the child may have no ring.
template <class Real>
[[gnu::cold, gnu::noinline]] void time_free(Real real) noexcept
{
    constexpr std::uint64_t ticks_max = 1 << 21;
    std::uint64_t const begin = ticks_before();
    real();
    if (this_process.number.load(std::memory_order_relaxed) == 0)
        return;
    std::uint64_t const took = duration(begin, ticks_after());
    the.ring->free_ticks.fetch_add(std::min(took, ticks_max), std::memory_order_relaxed);
    the.ring->timed_frees.fetch_add(1, std::memory_order_relaxed);
}

/// Returns the frame of the calling hook. Must be inlined.
[[gnu::always_inline]] inline hook_frame this_frame() noexcept
{
    return static_cast<hook_frame>(__builtin_frame_address(0));
}

} // namespace mallard::record
