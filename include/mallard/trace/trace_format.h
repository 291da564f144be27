/* The format of a trace file of allocations, for C99 and C++. Only types and small functions:
 * spec/trace_format.md says how they are used.
 *
 *     header, record, record, ...
 *
 * Header and records are written as they are in memory, in the byte order of the machine, which the
 * header records. A file whose writer was killed is valid up to its last whole record.
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
    mallard_trace_flags_shift = 52  /**< position of the flags */
};

/** The clock of `t` and `dur`, in units of 1 / `clock_hz` seconds. */
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
    uint64_t clock_hz;      /**< ticks of the clock in a second */
    uint64_t start;         /**< the time on the clock when the file was opened */
    uint64_t start_unix;    /**< the same moment, in nanoseconds since 1970 */
    uint32_t clock;         /**< enum mallard_trace_clock */
    uint32_t pid;           /**< the number of the process */
    uint64_t reserved;      /**< 0 */
} mallard_trace_header;

/** The kinds of records. A reader skips unknown kinds. */
enum mallard_trace_op {
    mallard_trace_allocate = 1,   /**< an allocation returned `addr`; 0: the allocation failed */
    mallard_trace_deallocate = 2, /**< `addr` is about to be freed */
    mallard_trace_reset = 3,      /**< all blocks of `stack` are about to be freed */
    /* The recorder of calls of malloc and its family uses the numbers 16 to 47. */
    mallard_trace_thread = 60, /**< the thread of the next events is `addr` */
    mallard_trace_name = 61,   /**< the name of `stack`: `size` characters in the next records */
    mallard_trace_lost = 62,   /**< `size` events are missing here */
    mallard_trace_end = 63     /**< the last record: `addr` records are before it, `size` events are
                                  missing; if it is absent, the writer was killed or had no room */
};

/** The flags of a record. */
enum mallard_trace_flag {
    mallard_trace_size_cut = 1, /**< the size is 2^40 - 1 or more */
    mallard_trace_dur_cut = 2   /**< the duration is 2^32 - 1 or more */
};

/** One event. An allocation is written after the call, a free before the call. So no two blocks in
 * use have the same address.
 */
typedef struct mallard_trace_record {
    uint64_t t;     /**< the end of an allocation, or the start of a free */
    uint64_t addr;  /**< the block */
    uint64_t what;  /**< from the lowest bit: size 40, log2 of the alignment 6, op 6, flags 12 */
    uint32_t stack; /**< the number of a call stack, or of a traced allocator */
    uint32_t dur;   /**< the duration of the call; 0 if it was not measured, as for a free */
} mallard_trace_record;

/** Returns the member `what` of a record. Larger sizes are cut to 2^40 - 1. */
static inline uint64_t mallard_trace_pack(uint64_t size, unsigned align_log2, unsigned op,
                                          unsigned flags)
{
    /* The values are widened without casts, because C++ programs may warn of C-style casts. */
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

/** The size in `what`, in bytes. */
static inline uint64_t mallard_trace_size(uint64_t what)
{
    return what & ((UINT64_C(1) << mallard_trace_align_shift) - 1);
}

/** The alignment in `what`, as the exponent of a power of two. */
static inline unsigned mallard_trace_align_log2(uint64_t what)
{
    return what >> mallard_trace_align_shift & 63;
}

/** The kind of record in `what`: enum mallard_trace_op. */
static inline unsigned mallard_trace_op_of(uint64_t what)
{
    return what >> mallard_trace_op_shift & 63;
}

/** The flags in `what`: enum mallard_trace_flag. */
static inline unsigned mallard_trace_flags(uint64_t what)
{
    uint64_t const flags = what >> mallard_trace_flags_shift;
    return flags & 0xfff;
}

#endif
