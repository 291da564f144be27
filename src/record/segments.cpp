// Reserves segments of the ring for threads, writes records into the segments, and seals them. A
// thread that reserves a segment may wait for the command.
#include "../os/errno_kept_linux.hpp"
#include "process.hpp"
#include "thread.hpp"

#include <algorithm>
#include <cstring>

#include <time.h>

namespace mallard::record {

namespace {

/// Pops a free segment, or returns null if no segment is free. Does not change the tag in the upper
/// half of `free_segments`. Each push by the command changes the tag, so the compare-exchange fails
/// if `top` was popped and pushed again in the meantime.
ring_segment* pop_segment() noexcept
{
    std::atomic<std::uint64_t>& head = the.ring->free_segments;
    std::uint64_t seen = head.load(std::memory_order_acquire);
    while (static_cast<std::uint32_t>(seen) != 0) {
        ring_segment& top = the.segments[static_cast<std::uint32_t>(seen) - 1];
        std::uint64_t const below = top.next.load(std::memory_order_relaxed);
        std::uint64_t const tag = seen >> 32 << 32;
        if (head.compare_exchange_weak(seen, tag | below, std::memory_order_acquire))
            return &top;
    }
    return nullptr;
}

/// Waits for a free segment. Returns null if the command has exited, because then no segment will
/// become free.
ring_segment* wait_for_segment() noexcept
{
    os::errno_kept const kept;
    the.ring->waits.fetch_add(1, std::memory_order_relaxed);
    timespec const pause{0, 100'000};
    for (unsigned turn = 1;; ++turn) {
        if (ring_segment* const s = pop_segment())
            return s;
        if (turn % 1024 == 0 && command_has_ended())
            return nullptr;
        ::nanosleep(&pause, nullptr);
    }
}

bool take_segment(thread_state& t, bool may_wait) noexcept
{
    ring_segment* s = pop_segment();
    if (s == nullptr && may_wait)
        s = wait_for_segment();
    if (s == nullptr)
        return false;
    s->thread = t.number;
    s->process = this_process.number.load(std::memory_order_relaxed);
    s->sequence = t.sequence++;
    s->system_thread = t.system_thread;
    s->system_process = system_process();
    s->state.store(segment_in_use, std::memory_order_release);
    t.segment = s;
    t.at = the.records + static_cast<std::size_t>(s - the.segments) * segment_records;
    t.end = t.at + segment_records;
    return true;
}

} // namespace

void seal(thread_state& t) noexcept
{
    if (t.segment != nullptr)
        t.segment->state.store(segment_sealed, std::memory_order_release);
    t.segment = nullptr;
    t.at = t.end = nullptr;
}

namespace {

/// Seals the segment of the thread and reserves another one. Returns false if the ring is full.
[[gnu::cold, gnu::noinline]] bool renew(thread_state& t, bool may_wait) noexcept
{
    seal(t);
    return take_segment(t, may_wait);
}

bool has_room(thread_state const& t, std::size_t records) noexcept
{
    return static_cast<std::size_t>(t.end - t.at) >= records;
}

/// Publishes the records that were written at `t.at`.
void publish(thread_state& t, std::size_t records) noexcept
{
    t.at += records;
    auto const count = segment_records - static_cast<std::size_t>(t.end - t.at);
    t.segment->count.store(static_cast<std::uint32_t>(count), std::memory_order_release);
}

[[gnu::cold, gnu::noinline]] void drop(thread_state& t) noexcept
{
    t.stack.forget(); // the reader does not get the stack of this event
    the.ring->lost_full.fetch_add(1, std::memory_order_relaxed);
}

/// Adds the time since `when` to the sum with which the ring measures the cost of recording.
/// Ignores times above about 10 us, because the thread has then waited for a segment, or was not
/// running.
[[gnu::cold, gnu::noinline]] void count_own_ticks(std::uint64_t when) noexcept
{
    constexpr std::uint64_t ticks_max = 32768;
    std::uint64_t const took = ticks() - when;
    if (took > ticks_max)
        return;
    the.ring->own_ticks.fetch_add(took, std::memory_order_relaxed);
    the.ring->own_events.fetch_add(1, std::memory_order_relaxed);
}

void begin_write(thread_state& t) noexcept
{
    t.now.store(in_write, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// Writes an event whose call stack is in `t.stack`.
[[gnu::always_inline]] inline void write(thread_state& t, std::uint64_t when, const void* block,
                                         std::uint64_t what, std::uint64_t duration,
                                         os::stack_change change) noexcept
{
    if (duration >= UINT32_MAX) [[unlikely]] {
        duration = UINT32_MAX;
        what |= std::uint64_t{mallard_trace_dur_cut} << mallard_trace_flags_shift;
    }
    if ((change.cut | change.gap) != 0) [[unlikely]]
        what |= (std::uint64_t{mallard_trace_stack_cut} * change.cut |
                 std::uint64_t{mallard_trace_stack_gap} * change.gap)
                << mallard_trace_flags_shift;
    std::size_t const records = 1 + (change.fresh + 3) / 4;
    if (!has_room(t, records) && !renew(t, the.ring->on_full == ring_wait)) [[unlikely]]
        return drop(t);
    *t.at = {when, reinterpret_cast<std::uintptr_t>(block), what,
             mallard_trace_pack_stack(change.kept, change.fresh),
             static_cast<std::uint32_t>(duration)};
    auto* const pcs = reinterpret_cast<std::uint64_t*>(t.at + 1);
    for (std::size_t i = 0; i < change.fresh; ++i)
        pcs[i] = t.stack.frames[change.kept + i].pc;
    for (std::size_t i = change.fresh; i % 4 != 0; ++i)
        pcs[i] = 0;
    publish(t, records);
    if ((++t.events & 1023) == 0) [[unlikely]]
        count_own_ticks(when);
}

} // namespace

void append(thread_state& t, std::uint64_t when, const void* block, std::uint64_t what,
            std::uint64_t duration, hook_frame frame) noexcept
{
    begin_write(t);
    os::stack_change change{};
    if (frame != nullptr && !t.stack.frames.empty())
        change = os::walk(
            t.stack, {frame[1], reinterpret_cast<std::uintptr_t>(frame + 2), frame[0]}, the.mode);
    write(t, when, block, what, duration, change);
}

void append_with_last_stack(thread_state& t, std::uint64_t when, const void* block,
                            std::uint64_t what, std::uint64_t duration) noexcept
{
    begin_write(t);
    write(t, when, block, what, duration, {t.stack.depth, 0, std::uint32_t{t.stack.cut}, 0});
}

void append_text(thread_state& t, mallard_trace_record record, const char* text,
                 std::size_t bytes) noexcept
{
    std::size_t const more = (bytes + sizeof record - 1) / sizeof record;
    begin_write(t);
    if (!has_room(t, 1 + more) && !renew(t, true))
        return; // the command has exited
    record.t = ticks();
    record.what |= bytes;
    t.at[0] = record;
    std::memset(t.at + 1, 0, more * sizeof record);
    std::memcpy(t.at + 1, text, bytes);
    publish(t, 1 + more);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t.now.store(in_call, std::memory_order_relaxed);
}

void append_mark(thread_state& t, unsigned op, const char* name, std::size_t bytes) noexcept
{
    constexpr std::size_t part_bytes = mallard_trace_name_part;
    std::size_t const records = std::max<std::size_t>(1, (bytes + part_bytes - 1) / part_bytes);
    begin_write(t);
    if (!has_room(t, records) && !renew(t, the.ring->on_full == ring_wait))
        return drop(t);
    std::uint64_t const when = ticks();
    for (std::size_t i = 0; i < records; ++i) {
        unsigned char part[part_bytes] = {};
        std::memcpy(part, name + i * part_bytes, std::min(part_bytes, bytes - i * part_bytes));
        mallard_trace_record& record = t.at[i];
        record = {
            when, 0,
            mallard_trace_pack(bytes, 0, i == 0 ? op : unsigned{mallard_trace_region_name}, 0), 0,
            0};
        std::memcpy(&record.addr, part, sizeof record.addr);
        std::memcpy(&record.stack, part + 8, sizeof record.stack);
        std::memcpy(&record.dur, part + 12, sizeof record.dur);
    }
    publish(t, records);
}

} // namespace mallard::record
