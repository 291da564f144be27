/* The format of a compiled plan, for C99 and C++. A plan assigns allocations of a program to local
 * allocators. `mallard plan make` and `mallard advise` write compiled plans, libmallard-plan.so
 * reads them, and spec/plan_format.md defines what they mean.
 *
 *     header, module, ..., rule, ..., caller, ..., stack, ..., frame, ..., range, ..., text
 *
 * All numbers are written as they are in memory, in the byte order of the machine, which the header
 * records.
 */
#ifndef PLAN_FORMAT_H
#define PLAN_FORMAT_H

#include <mallard/trace/replay_format.h>

#include <stdint.h>

/** Constants of the format. */
enum {
    mallard_plan_version = 1,             /**< the version of this format */
    mallard_plan_byte_order = 0x01020304, /**< reads differently in another byte order */
    mallard_plan_build_id_max = 32,       /**< the maximum bytes of a build-id */
    mallard_plan_modules_max = 1024,      /**< the maximum of modules */
    mallard_plan_rules_max = 64,          /**< the maximum of rules */
    mallard_plan_entries_max = 1 << 20,   /**< maximum of callers, stacks, frames, or ranges */
    mallard_plan_frames_max = 64,         /**< the maximum of frames in a stack */
    mallard_plan_block_max = 16384        /**< the largest block of a rule, in bytes */
};

/** The first bytes of a file. */
typedef struct mallard_plan_header {
    unsigned char magic[8]; /**< 89 'M' 'P' 'L' 'A' 'N' 0D 0A: changes when copied as text */
    uint32_t byte_order;    /**< mallard_plan_byte_order */
    uint32_t version;       /**< mallard_plan_version */
    uint32_t modules;       /**< number of modules in the plan */
    uint32_t rules;         /**< how many rules there are, at least 1 */
    uint32_t callers;       /**< number of callers in the plan */
    uint32_t stacks;        /**< number of stacks in the plan */
    uint32_t frames;        /**< how many frames all stacks have together */
    uint32_t ranges;        /**< number of ranges in the plan */
    uint32_t text_bytes;    /**< size of the text, a multiple of 8 */
    uint32_t reserved[3];   /**< 0 */
    uint64_t checksum;      /**< checksum of all other bytes of the file, computed as for an op
                                 stream: first the words after the header, then those in the header
                                 before `checksum` */
} mallard_plan_header;

/** A part of the text at the end of the file. It has UTF-8 or other bytes of the system, without a
 * zero.
 */
typedef struct mallard_plan_text {
    uint32_t at;    /**< the first byte, counted from the start of the text */
    uint32_t bytes; /**< the number of bytes in the text */
} mallard_plan_text;

/** A module, which is the program or a shared library. */
typedef struct mallard_plan_module {
    mallard_plan_text name;  /**< the name of the file, without directories */
    uint32_t build_id_bytes; /**< 0: the module has no build-id, and `key` identifies it */
    uint32_t is_program;     /**< 1: the program itself; 0: a shared library */
    uint64_t key; /**< checksum of the program headers and the unwind table: spec/plan_format.md */
    unsigned char build_id[mallard_plan_build_id_max]; /**< zero after its end */
} mallard_plan_module;

/** The kinds of local allocators. */
enum mallard_plan_allocator {
    mallard_plan_pool = 1,      /**< blocks of one size */
    mallard_plan_multipool = 2, /**< blocks of several sizes; freed blocks are used again by size */
    mallard_plan_arena = 3,     /**< blocks one after the other; chunks without blocks are reused */
    mallard_plan_multipool_over_arena =
        4 /**< a multipool that starts anew when all blocks are free */
};

/** A rule, which selects call stacks. Their allocations come from one kind of local allocator. */
typedef struct mallard_plan_rule {
    mallard_plan_text name; /**< for messages, such as the function that the rule is for */
    uint32_t allocator;     /**< enum mallard_plan_allocator */
    uint32_t block_bytes;   /**< the largest block in bytes, at most mallard_plan_block_max; the
                                 only size of a pool; larger requests go to malloc */
    uint64_t peak_bytes;    /**< the peak of the rule's blocks in the recorded run, in bytes; 0: not
                                 known, and the rule may hold any number of bytes */
    uint64_t reserved;      /**< 0 */
} mallard_plan_rule;

/** Special values of the member `answer` in a caller or stack, which otherwise contains a rule
 * number. */
enum {
    mallard_plan_by_stack = 0x40000000, /**< in a caller, plus the number of frames that distinguish
                                           its stacks, from 2 to mallard_plan_frames_max */
    mallard_plan_malloc = 0x7fffffff    /**< the program's own malloc */
};

/** A code address in a module. */
typedef struct mallard_plan_place {
    uint64_t address; /**< a return address as the file of the module has it (an ELF address) */
    uint32_t module;  /**< the number of the module, from 0 */
    uint32_t answer;  /**< of a caller: a rule, mallard_plan_by_stack + frames, or
                           mallard_plan_malloc; of a frame: 0 */
} mallard_plan_place;

/** A stack that begins with a caller whose answer is mallard_plan_by_stack. */
typedef struct mallard_plan_stack {
    uint32_t first;    /**< its first frame, the caller itself; outer frames follow */
    uint32_t frames;   /**< the number of frames */
    uint32_t answer;   /**< a rule, or mallard_plan_malloc */
    uint32_t reserved; /**< 0 */
} mallard_plan_stack;

/** The code of a function that a rule is for, or of an inlined copy. */
typedef struct mallard_plan_range {
    uint64_t begin;  /**< the first byte of code, as an address of the file */
    uint64_t end;    /**< the byte after the last */
    uint32_t module; /**< the number of the module, from 0 */
    uint32_t rule;   /**< the number of the rule, from 0 */
} mallard_plan_range;

#endif /* PLAN_FORMAT_H */
