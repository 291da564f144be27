// What the hooks know of the calling thread, and how they append an event.
//
// A hook calls `enter`, which returns null if the event must not be recorded. Otherwise the hook
// calls `append` and, at the end of the call, `leave`:
//
//     malloc:  enter, next.malloc, append, leave
//     free:    enter, append, leave, next.free
//
// So between two allocations of one address there is always its free (spec/trace_format.md).
#pragma once

#include "../os/ticks_linux.hpp"
#include "../os/unwind.hpp"
#include "ring.hpp"

#include <mallard/trace/trace_format.h>

#include <utility>

namespace mallard::record {

/// What the recorder knows from the ring. Constant after the process has attached to the ring.
struct settings {
    ring_header* ring = nullptr;
    ring_segment* segments = nullptr;
    mallard_trace_record* records = nullptr;
    double sample_rate = 0; ///< 1 / mean bytes between sampled allocations; 0: all events
    std::uint32_t time_mask = 0;
    bool has_stacks = false;
    bool has_free_stacks = false;
    bool follows_fork = false;
    os::stack_mode mode = os::stack_mode::unwound;
    bool reads_counter = false; ///< ticks are those of the processor's time stamp counter
};
extern constinit settings the;

/// The number of this process: 0 while the process has not attached to the ring. The system clears
/// the page in the child of a fork or clone (MADV_WIPEONFORK), so the child is not attached.
struct alignas(4096) process_page {
    std::atomic<std::uint32_t> number;
    std::atomic<std::uint32_t> is_attaching;
    std::atomic<std::uint32_t> text_is_in_use; ///< by the thread that writes a record of a module
};
extern constinit process_page this_process;

enum activity : std::uint8_t {
    in_program,
    in_call,  ///< inside the real function, or inside the recorder outside of `append`
    in_write, ///< inside `append`
};

/// The state of one thread. Trivially destructible, so that the last frees of a thread find it.
struct thread_state {
    std::atomic<activity> now{in_program};
    std::uint32_t process = 0; ///< differs from `this_process` until the thread has started, in the
                               ///< child of a fork, and after the thread has ended
    std::uint32_t calls = 0;   ///< calls that may be timed
    std::uint32_t events = 0;  ///< appended so far
    mallard_trace_record* at = nullptr; ///< where the next record of the segment is written
    mallard_trace_record* end = nullptr;
    ring_segment* segment = nullptr; ///< null: the thread has no segment
    std::uint64_t from = 0; ///< `what` of the operator new or delete that calls the next hook

    os::stack_memory stack{}; ///< frames: none before the thread starts and after it has ended

    double left = 0; ///< mean distances until the next sampled byte
    std::uint64_t random = 0;

    std::uint32_t number = 0;
    std::uint32_t sequence = 0;
    std::uint32_t ended_in = 0; ///< the process in which the thread has ended, or 0
    std::uint32_t system_thread = 0;
    std::uint32_t exit_rounds = 0; ///< how often the destructor of the thread's key has run
};
extern constinit thread_local thread_state this_thread;

thread_state* enter_slowly(thread_state& t) noexcept;
void leave_late(thread_state& t) noexcept;

/// Seals the segment and takes another one with room for `records`. False: the ring is full, and
/// the event is dropped and counted.
bool renew(thread_state& t, std::size_t records) noexcept;

/// Adds the time since `when` to the ring's measure of the recorder's own cost.
void count_own_ticks(std::uint64_t when) noexcept;

/// Appends the event and the fresh frames of its call stack.
void append_with_stack(thread_state& t, mallard_trace_record record, os::call_site from) noexcept;

/// Returns the state of the thread if an event of the thread is to be recorded now, and else null.
/// A signal handler that interrupts a call finds no state until `leave`.
[[gnu::always_inline]] inline thread_state* enter() noexcept
{
    thread_state& t = this_thread;
    if (t.now.load(std::memory_order_relaxed) != in_program ||
        t.process != this_process.number.load(std::memory_order_relaxed) || t.process == 0 ||
        the.ring->recording.load(std::memory_order_relaxed) == 0) [[unlikely]]
        return enter_slowly(t);
    t.now.store(in_call, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return &t;
}

[[gnu::always_inline]] inline void leave(thread_state& t) noexcept
{
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (t.process == 0) [[unlikely]]
        return leave_late(t);
    t.now.store(in_program, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline std::uint64_t ticks() noexcept
{
    return the.reads_counter ? os::ticks() : os::monotonic_ns();
}
[[gnu::always_inline]] inline std::uint64_t ticks_after() noexcept
{
    return the.reads_counter ? os::ticks_after() : os::monotonic_ns();
}

/// When a call began: 0 if the call is not to be timed.
[[gnu::always_inline]] inline std::uint64_t begin_of_call(thread_state& t) noexcept
{
    return (++t.calls & the.time_mask) == 0 ? ticks() : 0;
}

/// Publishes the record that was written at `t.at`, and `more` records after it.
[[gnu::always_inline]] inline void publish(thread_state& t, std::size_t more) noexcept
{
    t.at += 1 + more;
    auto const count = segment_records - static_cast<std::size_t>(t.end - t.at);
    t.segment->count.store(static_cast<std::uint32_t>(count), std::memory_order_release);
}

enum class stack_of : std::uint8_t {
    call,        ///< the call stack of an allocation
    free,        ///< that of a free, which may have none
    call_before, ///< that of the event before on this thread
};

/// Appends one event. To be called by a hook itself, between `enter` and `leave`: the call stack is
/// that of the hook's caller.
[[gnu::always_inline]] inline void append(thread_state& t, std::uint64_t when, const void* block,
                                          std::uint64_t what, std::uint64_t duration,
                                          stack_of which) noexcept
{
    t.now.store(in_write, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    auto dur = static_cast<std::uint32_t>(duration);
    if (duration >= UINT32_MAX) [[unlikely]] {
        dur = UINT32_MAX;
        what |= std::uint64_t{mallard_trace_dur_cut} << mallard_trace_flags_shift;
    }
    mallard_trace_record record{when, reinterpret_cast<std::uintptr_t>(block), what, 0, dur};
    if (which == stack_of::free ? the.has_free_stacks : the.has_stacks && which == stack_of::call) {
        append_with_stack(t, record, os::caller());
    } else {
        if (which == stack_of::call_before)
            record.stack = mallard_trace_pack_stack(t.stack.depth, 0);
        if (t.at != t.end || renew(t, 1)) [[likely]] {
            *t.at = record;
            publish(t, 0);
        }
    }
    if ((++t.events & 1023) == 0) [[unlikely]]
        count_own_ticks(when);
}

} // namespace mallard::record
