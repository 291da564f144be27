/* The format of an op stream, for C99 and C++. An op stream contains the calls of a recorded
 * program, in a form in which mallard-replay can repeat them. `mallard replay` writes op streams
 * from traces, and spec/replay_format.md defines how they are replayed.
 *
 *     header, thread, thread, ..., target, target, ..., ops of thread 0, ops of thread 1, ...
 *
 * All numbers are written as they are in memory, in the byte order of the machine, which the header
 * records.
 */
#ifndef REPLAY_FORMAT_H
#define REPLAY_FORMAT_H

#include <stdint.h>

/** Constants of the format. The shifts give the positions of the parts of `what`. */
enum {
    mallard_replay_version = 2,             /**< the version of this format */
    mallard_replay_byte_order = 0x01020304, /**< reads differently in another byte order */
    mallard_replay_align_shift =
        40,                       /**< position of the alignment; the size is in the bits below */
    mallard_replay_op_shift = 46, /**< position of the kind of op */
    mallard_replay_target_shift = 51,  /**< position of the target */
    mallard_replay_targets_max = 8192, /**< targets are numbered from 0 to 8191 */
    mallard_replay_slots_of_op = 16    /**< a file has at most this many slots for each op */
};

/** The first bytes of a file. */
typedef struct mallard_replay_header {
    unsigned char magic[8]; /**< 89 'M' 'R' 'E' 'P' 'L' 'Y' 0A: changes when copied as text */
    uint32_t byte_order;    /**< mallard_replay_byte_order */
    uint32_t version;       /**< mallard_replay_version */
    uint32_t header_bytes;  /**< the offset of the first thread: 80 */
    uint32_t op_bytes;      /**< size of an op: 16 */
    uint32_t threads;       /**< how many threads there are; thread 0 starts first */
    uint32_t targets;       /**< how many targets there are, target 0 included; at least 1 */
    uint64_t slots;         /**< how many slots there are; the ops need not use all */
    uint64_t ops;           /**< how many ops all threads have together */
    uint64_t live_peak;     /**< peak of the requested bytes in use, in the recorded order */
    uint64_t blocks_peak;   /**< peak of the blocks in use, in the recorded order */
    uint64_t calls;         /**< how many of the ops call an allocator */
    uint64_t checksum;      /**< of all other bytes of the file: see mallard_replay_mix */
} mallard_replay_header;

/** The table entry of a thread, whose ops are in program order. */
typedef struct mallard_replay_thread {
    uint64_t offset;   /**< file offset of the thread's first op, in bytes */
    uint64_t ops;      /**< number of ops in the thread; the last one is mallard_replay_end */
    uint64_t recorded; /**< the number of this thread in the trace */
    uint64_t start_ns; /**< start of the thread, in nanoseconds since the first event of the
                        * trace */
} mallard_replay_thread;

/** Kinds of allocators for a target (the allocator that serves an op). */
enum mallard_replay_allocator {
    mallard_replay_malloc = 0,    /**< the malloc of the process, as the program called it */
    mallard_replay_arena = 1,     /**< mallard::arena */
    mallard_replay_multipool = 2, /**< mallard::multipool */
    mallard_replay_multipool_over_arena = 3 /**< mallard::multipool over mallard::arena */
};

/** An allocator that serves ops. Target 0 is always the malloc of the process. All other targets
 * are local allocators, which mallard_replay_open makes and mallard_replay_close destroys.
 * Afterwards the target may be opened again, for the next run of its region.
 */
typedef struct mallard_replay_target {
    uint32_t allocator;   /**< enum mallard_replay_allocator */
    uint32_t is_shared;   /**< 1: ops of several threads use one instance, under a mutex */
    uint64_t first_chunk; /**< bytes of its first chunk; 0: the default of the allocator */
    uint32_t rule;        /**< the number of the rule of the plan, from 1; 0 for target 0 */
    uint32_t reserved;    /**< 0 */
} mallard_replay_target;

/** The kinds of ops. A slot is a place for the address of a block. An op that allocates writes its
 * slot, and an op that frees reads its slot.
 */
enum mallard_replay_op_kind {
    mallard_replay_end = 0, /**< the thread exits */

    /* Calls. For a target other than 0, all allocations call `allocate` and all frees call
     * `deallocate`. If an op frees, its size and alignment are those of the block. The block of an
     * operator new is freed by an operator delete, and every other block by `free`. */
    mallard_replay_op_malloc = 1,  /**< malloc(size) */
    mallard_replay_op_calloc = 2,  /**< calloc(1, size) */
    mallard_replay_op_aligned = 3, /**< aligned_alloc, or a function with the same effect */
    mallard_replay_op_realloc = 4, /**< after mallard_replay_realloc_from: realloc of the block in
                                        `slot`, with the result in the same slot; otherwise:
                                        realloc(NULL, size), with the result in `slot` */
    mallard_replay_op_new = 5,     /**< operator new */
    mallard_replay_op_new_aligned = 6,    /**< operator new with an alignment */
    mallard_replay_op_free = 7,           /**< free */
    mallard_replay_op_delete = 8,         /**< operator delete */
    mallard_replay_op_delete_aligned = 9, /**< operator delete with an alignment */
    mallard_replay_op_free_sized = 10,    /**< operator delete with a size */
    mallard_replay_op_free_aligned = 11,  /**< operator delete with a size and an alignment */
    mallard_replay_op_free_null = 12,     /**< free(NULL); no slot */

    /* Calls that failed when they were recorded. If such a call succeeds in the replay, the
     * replayer counts the call and frees the new block. It does not free a block that realloc has
     * resized. */
    mallard_replay_op_malloc_failed = 13,
    mallard_replay_op_calloc_failed = 14,
    mallard_replay_op_aligned_failed = 15,
    mallard_replay_op_realloc_failed = 16,

    mallard_replay_open = 18,    /**< makes an instance of `target` */
    mallard_replay_close = 19,   /**< destroys the instance of `target`, with all its memory */
    mallard_replay_publish = 20, /**< this thread has reached the position `size`; positions grow */
    mallard_replay_wait = 21,    /**< waits until thread `slot` has published position `size` */
    mallard_replay_start = 22,   /**< starts thread `slot` */
    mallard_replay_pause = 23,   /**< `size` more nanoseconds passed before the next op */
    mallard_replay_realloc_from = 24 /**< the size and the alignment of the block in `slot`; the
                                        next op reallocates the block, with success or without */
};

/** One op, which is a call or another action of a thread. */
typedef struct mallard_replay_op {
    uint64_t what; /**< from the lowest bit: size 40, log2 of the alignment 6, op 5, target 13 */
    uint32_t slot; /**< a slot or a thread, depending on the kind of op */
    uint32_t gap; /**< nanoseconds from the end of the thread's previous call to this one, for paces
                       other than `none`; longer gaps are mallard_replay_pause */
} mallard_replay_op;

/** Returns the member `what` of an op. */
static inline uint64_t mallard_replay_pack(uint64_t size, unsigned align_log2, unsigned op,
                                           unsigned target)
{
    /* The values are widened without casts, because compilers may warn about C-style casts in C++
     * programs. */
    uint64_t const align_bits = align_log2;
    uint64_t const op_bits = op;
    uint64_t const target_bits = target;
    return size | align_bits << mallard_replay_align_shift | op_bits << mallard_replay_op_shift |
           target_bits << mallard_replay_target_shift;
}

/** Adds a word to a checksum. To compute the checksum of a file, begin with 0, and add all words of
 * 8 bytes after the header in file order, and then the header words before `checksum`. A changed
 * word always changes the checksum, because each call is a bijection.
 */
static inline uint64_t mallard_replay_mix(uint64_t checksum, uint64_t word)
{
    uint64_t const product = (checksum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return product ^ product >> 32;
}

/** Returns the size in `what`, which is bytes, a position or a time, depending on the kind of
 * op. */
static inline uint64_t mallard_replay_size(uint64_t what)
{
    return what & ((UINT64_C(1) << mallard_replay_align_shift) - 1);
}

/** Returns the alignment in `what`, as the exponent of a power of two. */
static inline unsigned mallard_replay_align_log2(uint64_t what)
{
    return what >> mallard_replay_align_shift & 63;
}

/** Returns the kind of op in `what`, an enum mallard_replay_op_kind. */
static inline unsigned mallard_replay_op_of(uint64_t what)
{
    return what >> mallard_replay_op_shift & 31;
}

/** Returns the target in `what`. */
static inline unsigned mallard_replay_target_of(uint64_t what)
{
    uint64_t const target = what >> mallard_replay_target_shift;
    return target & 0x1fff;
}

#endif
