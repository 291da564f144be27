/* The format of an event log, a stream of allocation events, for C99 and C++. This file has only
 * types and small functions; spec/trace_format.md describes how to use them.
 *
 *     header, record, record, ...
 *
 * Header and records are written as they are in memory, in the byte order of the machine, which the
 * header records. If the writer was killed, the stream is valid up to its last whole record.
 */
#ifndef TRACE_FORMAT_H
#define TRACE_FORMAT_H

#include <stdint.h>

/** Constants of the format. The shifts give the positions of the parts of `what`. */
enum {
    mallard_trace_version = 1,             /**< the version of this format */
    mallard_trace_byte_order = 0x01020304, /**< reads differently in another byte order */
    mallard_trace_align_shift = 40, /**< position of the alignment; the size is in the bits below */
    mallard_trace_op_shift = 46,    /**< position of the kind of record */
    mallard_trace_flags_shift = 52, /**< position of the flags */
    mallard_trace_name_part = 16    /**< characters of a region's name in each record of a mark */
};

/** The clock of the times `t` and `dur`, which are in units of 1 / `clock_hz` seconds. */
enum mallard_trace_clock {
    mallard_trace_clock_monotonic = 1, /**< CLOCK_MONOTONIC, in nanoseconds */
    mallard_trace_clock_tsc = 2        /**< the time stamp counter of the processor */
};

/** The first bytes of a file. */
typedef struct mallard_trace_header {
    unsigned char magic[8]; /**< 89 'M' 'T' 'R' 'A' 'C' 'E' 0A: changes when copied as text */
    uint32_t byte_order;    /**< mallard_trace_byte_order */
    uint32_t version;       /**< mallard_trace_version */
    uint32_t header_bytes;  /**< the offset of the first record */
    uint32_t record_bytes;  /**< size of a record: 32 */
    uint64_t clock_hz;      /**< number of clock ticks in a second */
    uint64_t start;         /**< the clock time when the file was opened */
    uint64_t start_unix;    /**< the time of that moment, in nanoseconds since 1970 */
    uint32_t clock;         /**< enum mallard_trace_clock */
    uint32_t pid;           /**< the process ID */
    uint64_t sample_bytes;  /**< 0: every call is recorded; otherwise the mean number of allocated
                                 bytes between two sampled ones */
} mallard_trace_header;

/** The kinds of records. A reader skips unknown kinds. */
enum mallard_trace_op {
    mallard_trace_allocate = 1,   /**< an allocation returned `addr`, or failed if `addr` is 0 */
    mallard_trace_deallocate = 2, /**< `addr` is about to be freed */
    mallard_trace_reset = 3,      /**< all blocks of the allocator `stack` are about to be freed */

    /* Calls of malloc and its family. `stack` is a call stack (see mallard_trace_kept). */
    mallard_trace_malloc = 16,             /**< malloc returned `addr` */
    mallard_trace_calloc = 17,             /**< calloc; `size` is the product */
    mallard_trace_aligned_alloc = 18,      /**< aligned_alloc */
    mallard_trace_memalign = 19,           /**< memalign */
    mallard_trace_posix_memalign = 20,     /**< posix_memalign */
    mallard_trace_valloc = 21,             /**< valloc */
    mallard_trace_pvalloc = 22,            /**< pvalloc */
    mallard_trace_realloc_from = 24,       /**< realloc or reallocarray is about to resize `addr` */
    mallard_trace_realloc_to = 25,         /**< that realloc returned `addr`; 0: the old block is
                                                still in use, or was freed by size 0 */
    mallard_trace_free = 32,               /**< `addr` is about to be freed */
    mallard_trace_free_sized = 33,         /**< free_sized; `size` is from the caller */
    mallard_trace_free_aligned_sized = 34, /**< free_aligned_sized; `what` is from the caller */
    mallard_trace_family_first = 16,       /**< the first op of malloc's family */
    mallard_trace_family_last = 47,        /**< the last op that is reserved for the family */

    /* Records about modules, processes and threads. In some, a text of `size` characters follows in
     * the next records. */
    mallard_trace_module = 48,       /**< code is mapped at `addr` in the process whose number
                                          is `stack` */
    mallard_trace_process = 49,      /**< a process starts; its number in the trace is `stack`, its
                                          process ID is `addr` */
    mallard_trace_process_end = 50,  /**< a process ended; its number is `stack`, its wait status
                                          is `addr` */
    mallard_trace_thread_start = 51, /**< a thread starts in the process whose number is `dur`; the
                                          thread's number is `stack`, its thread ID is `addr` */
    mallard_trace_thread_end = 52,   /**< the thread whose number is `stack` exits */
    mallard_trace_memory = 53,       /**< figures of the memory of the process whose number is
                                          `stack` (text) */
    mallard_trace_cpu = 54,          /**< the thread whose number is `stack` has used `addr` ns of
                                          CPU time */
    mallard_trace_checkpoint = 55,   /**< all events published before `t` are before this record;
                                          `addr` is `t` in nanoseconds since the header's start */

    /* Marks of the program (see mallard/trace/region.h). The name of the region has `size`
     * characters. The first 16 are in `addr`, `stack` and `dur`, and 16 more are in each record
     * that follows. */
    mallard_trace_region_begin = 56, /**< the thread of the events enters a region */
    mallard_trace_region_end = 57,   /**< the thread leaves the region */
    mallard_trace_region_name = 58,  /**< more characters of the name */

    mallard_trace_thread = 60, /**< the thread of the next events is `addr` */
    mallard_trace_name = 61,   /**< the name of allocator `stack`; `size` characters follow */
    mallard_trace_lost = 62,   /**< `size` events are missing here, for the reason `stack` */
    mallard_trace_end = 63     /**< the last record: `addr` records are before it, `size` events are
                                  missing; if it is absent, the writer was killed or had no room */
};

/** The flags of a record. */
enum mallard_trace_flag {
    mallard_trace_size_cut = 1,    /**< the size is 2^40 - 1 or more */
    mallard_trace_dur_cut = 2,     /**< the duration is 2^32 - 1 or more */
    mallard_trace_from_new = 4,    /**< the caller was operator new or operator delete */
    mallard_trace_array = 8,       /**< the operator's form for arrays: new[] or delete[] */
    mallard_trace_nothrow = 16,    /**< the operator's form with std::nothrow */
    mallard_trace_sized = 32,      /**< the operator's form with a size, which is in `size` */
    mallard_trace_aligned = 64,    /**< the operator's form with an alignment */
    mallard_trace_stack_cut = 128, /**< the call stack lacks outer frames */
    mallard_trace_stack_gap = 256  /**< the call stack lacks frames between shared and new ones */
};

/** The reason why events are missing, stored in the member `stack` of a mallard_trace_lost
 * record. */
enum mallard_trace_loss {
    mallard_trace_loss_unknown = 0, /**< the writer does not know the reason */
    mallard_trace_loss_full = 1,    /**< the buffer was full, and the writer must not wait */
    mallard_trace_loss_nested = 2,  /**< a signal handler allocated while an event was written */
    mallard_trace_loss_write = 3    /**< the stream could not be written, as on a full disk */
};

/** One event. An allocation is written after the call, and a free before the call. So no two blocks
 * that are in use at the same time have the same address.
 */
typedef struct mallard_trace_record {
    uint64_t t;     /**< the end of an allocation, or the start of a free */
    uint64_t addr;  /**< the block */
    uint64_t what;  /**< from the lowest bit: size 40, log2 of the alignment 6, op 6, flags 12 */
    uint32_t stack; /**< a call stack, or the number of a traced allocator: see the op */
    uint32_t dur;   /**< the duration of the call; 0 if it was not measured, as for a free */
} mallard_trace_record;

/** Returns the member `what` of a record. Sizes above 2^40 - 1 are reduced to 2^40 - 1. */
static inline uint64_t mallard_trace_pack(uint64_t size, unsigned align_log2, unsigned op,
                                          unsigned flags)
{
    /* The values are widened without casts, because compilers may warn about C-style casts in C++
     * programs. */
    uint64_t const size_max = (UINT64_C(1) << mallard_trace_align_shift) - 1;
    uint64_t const align_bits = align_log2;
    uint64_t const op_bits = op;
    uint64_t flag_bits = flags;
    if (size >= size_max) {
        size = size_max;
        flag_bits |= mallard_trace_size_cut;
    }
    return size | align_bits << mallard_trace_align_shift | op_bits << mallard_trace_op_shift |
           flag_bits << mallard_trace_flags_shift;
}

/** Packs the member `stack` of an event of malloc's family. The event's call stack consists of the
 * outermost `kept` frames of the previous call stack of the same thread, and of `fresh` new inner
 * frames. The return addresses of the new frames follow the event, outermost first, four to a
 * record; unused places of the last record are 0. Both numbers are at most 65,535, and both are 0
 * if no call stack is known.
 */
static inline uint32_t mallard_trace_pack_stack(uint32_t kept, uint32_t fresh)
{
    return kept << 16 | fresh;
}

/** Returns the number of outer frames that `stack` shares with the previous event of the same
 * thread. */
static inline uint32_t mallard_trace_kept(uint32_t stack)
{
    return stack >> 16;
}

/** Returns the number of frames in `stack` whose return addresses follow the event. */
static inline uint32_t mallard_trace_fresh(uint32_t stack)
{
    return stack & 0xffff;
}

/** Returns 1 if `op` is a call of malloc's family, else 0. */
static inline int mallard_trace_is_family(unsigned op)
{
    return op >= mallard_trace_family_first && op <= mallard_trace_family_last;
}

/** Returns 1 if a text of `size` characters follows a record of the kind `op`, else 0. */
static inline int mallard_trace_has_text(unsigned op)
{
    return op == mallard_trace_module || op == mallard_trace_process ||
           op == mallard_trace_thread_start || op == mallard_trace_memory ||
           op == mallard_trace_name;
}

/** Returns the size in `what`, in bytes. */
static inline uint64_t mallard_trace_size(uint64_t what)
{
    return what & ((UINT64_C(1) << mallard_trace_align_shift) - 1);
}

/** Returns the alignment in `what`, as the exponent of a power of two. */
static inline unsigned mallard_trace_align_log2(uint64_t what)
{
    return what >> mallard_trace_align_shift & 63;
}

/** Returns the kind of record in `what`, an enum mallard_trace_op. */
static inline unsigned mallard_trace_op_of(uint64_t what)
{
    return what >> mallard_trace_op_shift & 63;
}

/** Returns the flags in `what`, bits of enum mallard_trace_flag. */
static inline unsigned mallard_trace_flags(uint64_t what)
{
    uint64_t const flags = what >> mallard_trace_flags_shift;
    return flags & 0xfff;
}

#endif
