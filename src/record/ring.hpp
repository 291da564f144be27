// The ring is the memory that a recorded program and the command `mallard record` share.
//
//     page 0      ring_header
//     page 1 on   ring_segment[segments]
//     then        segments x segment_bytes of records
//
// The command creates the ring as a memory file and starts the program with the environment
// variable MALLARD_RING, which names the file. The recorder library maps the file while it is
// loaded. Each thread of the program pops a segment from the stack of free segments, appends
// records to only this segment, and seals the segment when it is full. The command reads the
// records while the program runs, and pushes each sealed segment back when all its records are
// read. So no thread waits for another, and the records of a killed program can be read.
//
// The writers of each part:
//   - the command writes the fields up to `recording`, `clock` and `clock_ticks`, before the
//     program starts; later only `recording`;
//   - the thread that popped a segment writes the segment's fields and records, until it seals the
//     segment;
//   - the command resets a sealed segment before it pushes the segment. It also resets and pushes
//     the segments of a thread or process that exited without sealing them. The command loads
//     `state` before `count`, so that the count of a sealed segment is final.
// tests/models/record_ring.pml checks this protocol.
//
// crates/mallard-cli must declare the same types. When any of these types changes, `version`
// changes, too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mallard::record {

constexpr std::uint32_t ring_version = 3;
constexpr std::size_t segment_bytes = 16384; // 512 records
constexpr std::size_t segment_records = segment_bytes / 32;
constexpr std::size_t segment_table_offset = 4096;

/// The behaviour of a thread when no segment is free.
enum ring_on_full : std::uint32_t {
    ring_wait = 0, ///< wait until the command has pushed a segment
    ring_drop = 1, ///< drop events, and count them in `lost_full`
};

/// The part of each call stack that is recorded.
enum ring_stacks : std::uint32_t {
    ring_no_stacks = 0,
    ring_caller = 1,         ///< only the return address of the call
    ring_frame_pointers = 2, ///< the chain of frame pointers
    ring_unwound = 3,        ///< all frames, found with the unwind tables
};

enum ring_follow : std::uint32_t {
    ring_follow_fork = 1, ///< the child of a fork is recorded as a separate process
    ring_follow_exec = 2, ///< programs that a recorded process executes are recorded
};

/// The first page of the ring.
struct ring_header {
    unsigned char magic[8]; ///< 89 'M' 'R' 'I' 'N' 'G' 0D 0A
    std::uint32_t version;
    std::uint32_t segments;               ///< number of segments
    std::uint64_t data_offset;            ///< offset of the first segment; a multiple of 4,096
    std::uint32_t on_full;                ///< ring_on_full
    std::uint32_t stacks;                 ///< ring_stacks
    std::uint32_t free_stacks;            ///< 1 if frees have call stacks, too
    std::uint32_t follow;                 ///< bits of ring_follow
    std::uint64_t sample_bytes;           ///< mean bytes between sampled allocations; 0: all events
    std::uint32_t time_calls;             ///< one call in `time_calls` is timed; a power of two
    std::atomic<std::uint32_t> recording; ///< 0 while events are not recorded

    /// The stack of free segments. The low half is the index of the top segment plus 1, or 0 if the
    /// stack is empty. The high half grows with each push, so that a compare-exchange fails if the
    /// top segment was popped and pushed again in the meantime (ABA).
    alignas(64) std::atomic<std::uint64_t> free_segments;

    alignas(64) std::atomic<std::uint64_t> lost_full; ///< events dropped because the ring was full
    std::atomic<std::uint64_t> lost_nested; ///< events of signal handlers that interrupted a write
    std::atomic<std::uint64_t> waits;       ///< times that a thread waited for a segment
    std::uint32_t clock;                    ///< enum mallard_trace_clock; the command sets it
    std::uint32_t clock_ticks;              ///< cost of reading the clock; see `duration`
    std::atomic<std::uint32_t> processes;   ///< number of the last process; the first is 1
    std::atomic<std::uint32_t> threads;     ///< number of the last thread; the first is 1
    std::atomic<std::uint32_t> attached;    ///< 1 after a recorder has mapped the ring
    std::atomic<std::uint32_t> refused;     ///< errno value if a recorder could not start

    /// The cost of recording, measured for one event in 1,024. `own_ticks` is the sum of the ticks
    /// between the time stamp of an event and the end of its recording. `own_events` is the number
    /// of these events. The time stamp of an allocation is taken after the real call, and the time
    /// stamp of a free when its call begins.
    std::atomic<std::uint64_t> own_ticks;
    std::atomic<std::uint64_t> own_events;

    /// The cost of frees in the next allocator, measured for one free in 64. The first member is
    /// the sum of their ticks, the second the number of these frees. Records of frees do not
    /// contain the duration, because they are written before the free.
    alignas(64) std::atomic<std::uint64_t> free_ticks;
    std::atomic<std::uint64_t> timed_frees;
};

/// The state of a segment.
enum segment_state : std::uint32_t {
    segment_free = 0,
    segment_in_use = 1,
    segment_sealed = 2, ///< `count` does not change any more
};

/// The header of one segment. The records themselves are at data_offset + index * segment_bytes.
struct alignas(64) ring_segment {
    std::atomic<std::uint32_t> count; ///< number of readable records; stored with release order
    std::atomic<std::uint32_t> state; ///< segment_state; sealed with release order
    std::atomic<std::uint32_t> next;  ///< on the free stack: next segment's index + 1, or 0
    std::uint32_t thread;             ///< number of the thread, from ring_header::threads
    std::uint32_t process;            ///< number of the process, from ring_header::processes
    std::uint32_t sequence;           ///< 0 for the first segment of a thread, then 1, 2, ...
    std::uint32_t system_thread;      ///< gettid()
    std::uint32_t system_process;     ///< getpid()
    unsigned char padding[32];
};

static_assert(sizeof(ring_header) == 256 && sizeof(ring_segment) == 64);
static_assert(offsetof(ring_header, free_segments) == 64);
static_assert(offsetof(ring_header, lost_full) == 128);
static_assert(offsetof(ring_header, attached) == 168 && offsetof(ring_header, own_ticks) == 176);
static_assert(offsetof(ring_header, free_ticks) == 192);

} // namespace mallard::record
