/* Mallard for C: pools, arenas and multipools. C89, any later C, and C++.
 *
 *     mallard_pool_options options;
 *     mallard_pool* nodes;
 *     struct node* n;
 *
 *     mallard_pool_options_init(&options, sizeof options);
 *     options.block_bytes = sizeof *n;
 *     nodes = mallard_pool_create(&options);
 *     n = mallard_pool_allocate(nodes);
 *     mallard_pool_free(nodes, n);
 *     mallard_pool_destroy(nodes);
 *
 * Sizes are in bytes. An alignment is a power of two; every one is honoured.
 *
 * FAILURE. What gives a pointer gives NULL, what gives an int gives 0 for
 * success and else an enum mallard_error. Either sets errno, to EINVAL for a
 * mistake of the caller's and to ENOMEM where memory is short, and leaves an
 * explanation for the calling thread: see mallard_explain. A failed call has
 * changed nothing.
 *
 * NULL. A handle of NULL is what a failed create gave: then functions that free
 * do nothing (free, reset, release, trim, rewind, destroy), and all others fail
 * with EINVAL. To free a block of NULL does nothing.
 *
 * THREADS. Different handles: any threads. The same handle: as its options say
 * with `sync`. No other thread may use a handle during its destroy, reset,
 * release, trim, rewind or for_each. Nothing here is for a signal handler.
 *
 * Link with -lmallard-c, or ask pkg-config for mallard-c, or link mallard::c
 * after find_package(mallard). The library needs no C++ runtime.
 */
#ifndef MALLARD_H
#define MALLARD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- versions and errors -------------------------------------------------- */

enum {
    MALLARD_VERSION_MAJOR = 0,
    MALLARD_VERSION_MINOR = 1,
    MALLARD_VERSION_PATCH = 0,
    /* Of this header, to compare with mallard_version(). */
    MALLARD_VERSION =
        MALLARD_VERSION_MAJOR * 10000 + MALLARD_VERSION_MINOR * 100 + MALLARD_VERSION_PATCH
};

/* MALLARD_VERSION of the library that runs: 100 is 0.1.0. */
int mallard_version(void);

typedef enum mallard_error {
    MALLARD_ERROR_NONE = 0,
    /* errno EINVAL */
    MALLARD_ERROR_NULL = 1,        /* a handle or argument is NULL that may not be */
    MALLARD_ERROR_STRUCT = 2,      /* struct_bytes is no size of that struct */
    MALLARD_ERROR_OPTION = 3,      /* an option has a value that it cannot have */
    MALLARD_ERROR_CONFLICT = 4,    /* two options contradict each other */
    MALLARD_ERROR_ALIGN = 5,       /* an alignment is not a power of two */
    MALLARD_ERROR_UNSUPPORTED = 6, /* this kind of allocator does not do that */
    MALLARD_ERROR_CHUNK = 7,       /* a caller's `take` gave a misaligned chunk */
    /* errno ENOMEM */
    MALLARD_ERROR_TOO_LARGE = 8, /* no address space holds as much */
    MALLARD_ERROR_REFUSED = 9,   /* the heap, `take` or the buffer has no more */
    MALLARD_ERROR_LIMIT = 10,    /* limit_bytes is reached */
    MALLARD_ERROR_PLACE = 11     /* a block cannot grow where it is */
} mallard_error;

/* Of the last call in this thread that failed; MALLARD_ERROR_NONE if none has. */
mallard_error mallard_last_error(void);

/* A few words, of static life and never NULL; any number may be asked about. */
const char* mallard_strerror(int error);

/* Enough for every explanation. */
enum { MALLARD_EXPLANATION_BYTES = 512 };

/* The last failure of this thread, in three lines: what happened, in what state
 * things are, what to do. Writes at most `bytes` to `text`, cut to fit, with a
 * NUL; gives `text`, or mallard_strerror's words if there is no room at all.
 *
 *     char why[MALLARD_EXPLANATION_BYTES];
 *     fputs(mallard_explain(why, sizeof why), stderr);
 */
const char* mallard_explain(char* text, size_t bytes);

/* --- options -------------------------------------------------------------- */

/* Which size follows which, when an allocator takes memory from its source.
 * Members that the chosen growth does not use are 0. */
enum mallard_growth {
    MALLARD_GROWTH_DEFAULT = 0,  /* as geometric, with 2/1 */
    MALLARD_GROWTH_NONE = 1,     /* one step of first_bytes, and no other */
    MALLARD_GROWTH_FIXED = 2,    /* each step first_bytes */
    MALLARD_GROWTH_LINEAR = 3,   /* each step growth_add more than the last */
    MALLARD_GROWTH_GEOMETRIC = 4 /* last * growth_num / growth_den + growth_add */
};

/* Who may use one handle at a time. */
enum mallard_sync {
    MALLARD_SYNC_NONE = 0,         /* one thread at a time */
    MALLARD_SYNC_MUTEX = 1,        /* any thread, one after the other */
    MALLARD_SYNC_LOCK_FREE = 2,    /* pools with MALLARD_GROWTH_NONE, or in a buffer: any
                                    * thread, signal handlers too. The first allocation takes
                                    * the only chunk; later calls neither lock nor wait. */
    MALLARD_SYNC_THREAD_CACHED = 3 /* any thread, each from its own cache */
};

/* Which free block comes next. Not asked for lock_free and thread_cached. */
enum mallard_reuse {
    MALLARD_REUSE_DEFAULT = 0, /* ordered; lifo for a multipool or in a buffer */
    MALLARD_REUSE_ORDERED = 1, /* free blocks are never read: best if frees scatter */
    MALLARD_REUSE_LIFO = 2     /* the last one freed: best for small pools */
};

/* What is verified of the caller. */
enum mallard_check {
    MALLARD_CHECK_OFF = 0,
    MALLARD_CHECK_ON = 1 /* a double or foreign free, or a rewind to a mark that is
                          * gone, stops the process with a message */
};

/* A source of the caller's. `take` gives `bytes` at a multiple of `align`, a power
 * of two from 16 up, or NULL to refuse: then less may be asked for. `give` gets
 * back what `take` gave, with the same numbers; in no particular order. Neither
 * may call into the allocator that it serves, nor leave by longjmp or by an
 * exception, at which the process stops. One allocator calls them from one thread
 * at a time. */
typedef void* (*mallard_take)(void* context, size_t bytes, size_t align);
typedef void (*mallard_give)(void* context, void* chunk, size_t bytes, size_t align);

/* An options struct begins with its own size, which each caller sets to sizeof.
 * So it can grow: a library reads the members that it knows, and takes 0 for
 * those that an older caller does not have. A newer caller's member that it does
 * not know must be 0, else create fails. The value 0 is the default of all that
 * is not marked "required". In C99 one may begin with
 *
 *     mallard_pool_options o = {.struct_bytes = sizeof o, .block_bytes = 48};
 *
 * and in any C with mallard_pool_options_init.
 *
 * SOURCE. Without `take` and without `buffer`, malloc and free. With a buffer,
 * that alone, and its bytes outlive the allocator. The handle itself is the
 * first thing taken from the source, and given back last.
 *
 * GROWTH. The first step is first_bytes; no step exceeds step_max_bytes, except
 * for a request that does. limit_bytes bounds the sum, without the handle. At least nine
 * tenths of a limit of 8 KiB or more can be used, in blocks of any size. A step that
 * the source refuses is halved, down to what is needed. */
typedef struct mallard_pool_options {
    size_t struct_bytes;           /* required: sizeof */
    size_t block_bytes;            /* required: of each block */
    size_t align;                  /* 0: the largest power of two that divides
                                    * block_bytes, to 16. Say it for a struct with a
                                    * flexible array member. */
    int growth;                    /* enum mallard_growth */
    int sync;                      /* enum mallard_sync */
    int reuse;                     /* enum mallard_reuse */
    int check;                     /* enum mallard_check */
    size_t first_bytes;            /* 64 KiB; in a buffer all of it. Ordered pools
                                    * take whole chunks of 64 KiB, or what large
                                    * blocks need, or less under a low limit. */
    size_t step_max_bytes;         /* 1 MiB */
    size_t limit_bytes;            /* none */
    size_t growth_num, growth_den; /* 2, 1 */
    size_t growth_add;
    mallard_take take;
    mallard_give give;
    void* context; /* passed to both */
    void* buffer;
    size_t buffer_bytes;
} mallard_pool_options;

typedef struct mallard_arena_options {
    size_t struct_bytes;   /* required: sizeof */
    int growth;            /* enum mallard_growth */
    int sync;              /* none, or thread_cached: no mark, rewind or expand then */
    int check;             /* enum mallard_check */
    int reserved;          /* 0 */
    size_t first_bytes;    /* 1 KiB; in a buffer all of it */
    size_t step_max_bytes; /* 16 MiB; by default each step is four times the last */
    size_t limit_bytes;    /* none */
    size_t growth_num, growth_den;
    size_t growth_add;
    mallard_take take;
    mallard_give give;
    void* context;
    void* buffer;
    size_t buffer_bytes;
} mallard_arena_options;

typedef struct mallard_multipool_options {
    size_t struct_bytes;   /* required: sizeof */
    int growth;            /* enum mallard_growth: of each of its pools */
    int sync;              /* enum mallard_sync */
    int reuse;             /* enum mallard_reuse */
    int check;             /* enum mallard_check */
    size_t first_bytes;    /* 2 KiB; in a buffer 1 KiB */
    size_t step_max_bytes; /* 1 MiB; by default each step is four times the last */
    size_t limit_bytes;    /* of each pool; none. To bound all, bound the source. */
    size_t growth_num, growth_den;
    size_t growth_add;
    mallard_take take;
    mallard_give give;
    void* context;
    void* buffer;
    size_t buffer_bytes;
} mallard_multipool_options;

/* Clears a struct of `struct_bytes`, and says so in it. */
void mallard_pool_options_init(mallard_pool_options* options, size_t struct_bytes);
void mallard_arena_options_init(mallard_arena_options* options, size_t struct_bytes);
void mallard_multipool_options_init(mallard_multipool_options* options, size_t struct_bytes);

/* What an allocator holds, found by a walk through its chunks when asked. The
 * caller sets struct_bytes; members that the library does not know become 0. */
typedef struct mallard_stats {
    size_t struct_bytes;
    size_t blocks_live; /* in use; an arena does not count them: 0 */
    size_t bytes_live;  /* in use */
    size_t bytes_idle;  /* in chunks, not in use */
    size_t bytes_taken; /* from the source: live, idle and bookkeeping; not the handle */
    size_t chunks;
    size_t growths; /* steps, ever */
    size_t refills; /* how often, ever, nothing was at hand and something was found */
    size_t flushes; /* how often, ever, too much was, and half of it was let go */
} mallard_stats;

/* What an allocator knows of an address. */
typedef enum mallard_validity {
    MALLARD_MISS = 0,   /* not in any of its chunks */
    MALLARD_VALID = 1,  /* the first byte of a block in use */
    MALLARD_INVALID = 2 /* in its chunks, but inside a block, free, or never given out */
} mallard_validity;

/* --- pool: blocks of one size, freed one by one --------------------------- */

typedef struct mallard_pool mallard_pool;

/* Takes nothing but its handle, of less than 1 KiB, before the first block. */
mallard_pool* mallard_pool_create(const mallard_pool_options* options);

/* Gives everything back to the source. Blocks die with their pool. */
void mallard_pool_destroy(mallard_pool* pool);

/* Blocks are as the source gave them, or as they were freed: not cleared. */
void* mallard_pool_allocate(mallard_pool* pool);
void mallard_pool_free(mallard_pool* pool, void* block);

/* All or nothing: on failure `out` has `count` NULLs. */
int mallard_pool_allocate_batch(mallard_pool* pool, void** out, size_t count);
void mallard_pool_free_batch(mallard_pool* pool, void* const* blocks, size_t count);

/* reset: frees every block and keeps the memory. release: frees every block and
 * gives the memory back. trim: gives back what is idle, beyond keep_bytes. */
void mallard_pool_reset(mallard_pool* pool);
void mallard_pool_release(mallard_pool* pool);
void mallard_pool_trim(mallard_pool* pool, size_t keep_bytes);

/* Of each block: what was asked for, rounded up to a multiple of the alignment. */
size_t mallard_pool_block_bytes(const mallard_pool* pool);
size_t mallard_pool_block_align(const mallard_pool* pool);

/* 1 if `p` points into a chunk of the pool, else 0; O(log chunks). */
int mallard_pool_owns(const mallard_pool* pool, const void* p);
mallard_validity mallard_pool_classify(const mallard_pool* pool, const void* p);
int mallard_pool_stats(const mallard_pool* pool, mallard_stats* out);

/* Visits each block in use, in address order. `visit` may free the block that it
 * is given, and do nothing else to the pool. */
int mallard_pool_for_each(mallard_pool* pool, void (*visit)(void* context, void* block),
                          void* context);

/* Bytes of a buffer, wherever it lies, in which such a pool surely holds `count`
 * blocks, with its handle: for reuse lifo, and sync none or mutex. 0: an error. */
size_t mallard_pool_bytes_for(const mallard_pool_options* options, size_t count);

/* --- arena: blocks by moving a pointer, freed together -------------------- */

typedef struct mallard_arena mallard_arena;

/* NULL as options: all defaults. */
mallard_arena* mallard_arena_create(const mallard_arena_options* options);
void mallard_arena_destroy(mallard_arena* arena);

/* An `align` of 0 is that of max_align_t, which serves any type: 16. Of 0 bytes
 * are blocks too, each of its own address. */
void* mallard_arena_allocate(mallard_arena* arena, size_t bytes, size_t align);

/* Takes back the bytes of the last block, and does nothing for any other. The
 * size and alignment are those that were asked for. */
void mallard_arena_free(mallard_arena* arena, void* block, size_t bytes, size_t align);

/* 0: the block is now new_bytes long, where it is. Growing works for the last
 * block, while its chunk has room; else MALLARD_ERROR_PLACE. */
int mallard_arena_expand(mallard_arena* arena, void* block, size_t old_bytes, size_t new_bytes);

/* A point to come back to: rewind frees what came after it, and keeps the
 * memory. Marks nest; the newest is rewound to first. */
typedef struct mallard_mark {
    void* reserved[6];
} mallard_mark;
int mallard_arena_mark(mallard_arena* arena, mallard_mark* out);
void mallard_arena_rewind(mallard_arena* arena, const mallard_mark* mark);

void mallard_arena_reset(mallard_arena* arena);
void mallard_arena_release(mallard_arena* arena);
void mallard_arena_trim(mallard_arena* arena, size_t keep_bytes);
int mallard_arena_stats(const mallard_arena* arena, mallard_stats* out);

/* --- multipool: blocks of any size, freed one by one ---------------------- */

typedef struct mallard_multipool mallard_multipool;

/* NULL as options: all defaults. The handle takes less than 1 KiB for one thread, and 20
 * to 36 KiB where threads share it. */
mallard_multipool* mallard_multipool_create(const mallard_multipool_options* options);
void mallard_multipool_destroy(mallard_multipool* multipool);

/* Blocks have no header: `bytes` and `align` must be the same at free. As in an
 * arena, an `align` of 0 is 16. Say 8 where that will do, and 24 bytes take 24
 * instead of 32. Above 32 KiB, a block comes straight from the source. */
void* mallard_multipool_allocate(mallard_multipool* multipool, size_t bytes, size_t align);
void mallard_multipool_free(mallard_multipool* multipool, void* block, size_t bytes, size_t align);

void mallard_multipool_reset(mallard_multipool* multipool);
void mallard_multipool_release(mallard_multipool* multipool);
void mallard_multipool_trim(mallard_multipool* multipool, size_t keep_bytes_of_each_pool);

int mallard_multipool_owns(const mallard_multipool* multipool, const void* p);
mallard_validity mallard_multipool_classify(const mallard_multipool* multipool, const void* p);
int mallard_multipool_stats(const mallard_multipool* multipool, mallard_stats* out);

#ifdef __cplusplus
}
#endif

#endif
