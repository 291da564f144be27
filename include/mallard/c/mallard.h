/* Mallard for C: pools, arenas and multipools, for C89, any later C, and C++.
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
 * Sizes are in bytes. An alignment is any power of two.
 *
 * FAILURE. If a call fails, a function that returns a pointer returns NULL. A function that returns
 * an int returns an enum mallard_error instead of 0, unless its comment specifies another result. A
 * failed call sets errno to EINVAL for a mistake of the caller, or to ENOMEM if memory is short. It
 * also records an explanation for the calling thread (see mallard_explain). A failed call changes
 * nothing else.
 *
 * NULL. A failed create returns a NULL handle. With a NULL handle, functions that free (free,
 * reset, release, trim, rewind, destroy) do nothing, and all others fail with EINVAL. A free of a
 * NULL block does nothing.
 *
 * THREADS. Threads may use different handles at the same time. The option `sync` determines which
 * threads may use one handle. While destroy, reset, release, trim, rewind or for_each runs on a
 * handle, no other thread may use it. A signal handler must not call these functions, except that
 * it may allocate from and free to a pool with MALLARD_SYNC_LOCK_FREE, after the first allocation
 * of that pool.
 *
 * Link with -lmallard-c, or use the pkg-config package mallard-c, or link mallard::c after
 * find_package(mallard). The library needs no C++ runtime.
 */
#ifndef MALLARD_H
#define MALLARD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- versions and errors -------------------------------------------------- */

/** The version of this header. */
enum {
    MALLARD_VERSION_MAJOR = 0, /**< the major version, the first part of 0.1.0 */
    MALLARD_VERSION_MINOR = 1, /**< the minor version, the second part */
    MALLARD_VERSION_PATCH = 0, /**< the patch version, the third part */
    /** The three parts in one number, for comparisons with mallard_version(). */
    MALLARD_VERSION =
        MALLARD_VERSION_MAJOR * 10000 + MALLARD_VERSION_MINOR * 100 + MALLARD_VERSION_PATCH
};

/** Returns the version of the loaded library, like MALLARD_VERSION: 100 means 0.1.0. */
int mallard_version(void);

/** The reason of a failure. The comments between the errors give the values of errno. */
typedef enum mallard_error {
    MALLARD_ERROR_NONE = 0, /**< no failure */
    /* errno EINVAL */
    MALLARD_ERROR_NULL = 1,        /**< a required handle or argument is NULL */
    MALLARD_ERROR_STRUCT = 2,      /**< struct_bytes is not a size of that struct */
    MALLARD_ERROR_OPTION = 3,      /**< an option has an invalid value */
    MALLARD_ERROR_CONFLICT = 4,    /**< two options contradict each other */
    MALLARD_ERROR_ALIGN = 5,       /**< an alignment is not a power of two */
    MALLARD_ERROR_UNSUPPORTED = 6, /**< this kind of allocator does not support the call */
    MALLARD_ERROR_CHUNK = 7,       /**< the caller's `take` returned a misaligned chunk */
    /* errno ENOMEM */
    MALLARD_ERROR_TOO_LARGE = 8, /**< the request exceeds the address space */
    MALLARD_ERROR_REFUSED = 9,   /**< malloc, `take` or the buffer has no more memory */
    MALLARD_ERROR_LIMIT = 10,    /**< limit_bytes is reached */
    MALLARD_ERROR_PLACE = 11     /**< the block cannot grow in place */
} mallard_error;

/** Returns the error of the last failed call in this thread, or MALLARD_ERROR_NONE if no call
 * failed. */
mallard_error mallard_last_error(void);

/** Returns a short description of any error number, as a static string that is never NULL. */
const char* mallard_strerror(int error);

/** Constants of mallard_explain. */
enum { MALLARD_EXPLANATION_BYTES = 512 /**< enough for every explanation */ };

/** Explains the last failure of this thread in three lines: what happened, the state, and what to
 * do about it. Writes at most `bytes` bytes to `text`, including a final NUL, and returns `text`. A
 * longer explanation is truncated. If `bytes` is 0 or `text` is NULL, returns the static text of
 * mallard_strerror.
 *
 *     char why[MALLARD_EXPLANATION_BYTES];
 *     fputs(mallard_explain(why, sizeof why), stderr);
 */
const char* mallard_explain(char* text, size_t bytes);

/* --- options -------------------------------------------------------------- */

/** How much memory an allocator requests from its source at a time. Options that the chosen growth
 * does not use must be 0. */
enum mallard_growth {
    MALLARD_GROWTH_DEFAULT = 0,  /**< each request is twice as large as the last, in arenas and
                                  * multipools four times */
    MALLARD_GROWTH_NONE = 1,     /**< a single request of first_bytes */
    MALLARD_GROWTH_FIXED = 2,    /**< each request has first_bytes */
    MALLARD_GROWTH_LINEAR = 3,   /**< each request has growth_add bytes more than the last */
    MALLARD_GROWTH_GEOMETRIC = 4 /**< last * growth_num / growth_den + growth_add bytes */
};

/** Which threads may use one handle at the same time. */
enum mallard_sync {
    MALLARD_SYNC_NONE = 0,         /**< one thread at a time */
    MALLARD_SYNC_MUTEX = 1,        /**< any thread, under a lock */
    MALLARD_SYNC_LOCK_FREE = 2,    /**< any thread, and signal handlers; only for pools with
                                    * MALLARD_GROWTH_NONE or in a buffer. The first allocation
                                    * requests the only chunk. Later calls neither lock nor wait. */
    MALLARD_SYNC_THREAD_CACHED = 3 /**< any thread, each with a separate cache */
};

/** Which free block is allocated next. Ignored for MALLARD_SYNC_LOCK_FREE and
 * MALLARD_SYNC_THREAD_CACHED. */
enum mallard_reuse {
    MALLARD_REUSE_DEFAULT = 0, /**< ordered; lifo for a multipool or in a buffer */
    MALLARD_REUSE_ORDERED = 1, /**< free blocks are never read; best for frees in random order */
    MALLARD_REUSE_LIFO = 2     /**< the block freed last; best for small pools */
};

/** Which errors of the caller are detected. */
enum mallard_check {
    MALLARD_CHECK_OFF = 0, /**< nothing */
    MALLARD_CHECK_ON = 1   /**< a double or foreign free, or a rewind to an outdated
                            * mark, stops the process with a message */
};

/** A source of the caller consists of the functions `take` and `give`. `take` returns `bytes` bytes
 * at a multiple of `align`, which is a power of two of at least 16. If `take` returns NULL, the
 * allocator may request less. `give` frees a chunk that `take` returned, with the same `bytes` and
 * `align`. Chunks are freed in any order. Neither function may call the allocator that it serves,
 * or leave by longjmp. An exception stops the process. An allocator calls `take` and `give` from
 * one thread at a time. */
typedef void* (*mallard_take)(void* context, size_t bytes, size_t align);
/** Frees a chunk that `take` returned: see mallard_take. */
typedef void (*mallard_give)(void* context, void* chunk, size_t bytes, size_t align);

/** An options struct begins with its own size, which the caller sets to sizeof, so that later
 * versions can add members. If a program was compiled for an older library, the members that its
 * struct lacks count as 0. If it was compiled for a newer library, the members that this library
 * does not know must be 0, or else create fails. A 0 selects the default of a member, unless the
 * member is marked "required". In C99:
 *
 *     mallard_pool_options o = {.struct_bytes = sizeof o, .block_bytes = 48};
 *
 * In any C, call mallard_pool_options_init.
 *
 * SOURCE. Without `take` and `buffer`, memory comes from malloc. With `buffer`, memory comes only
 * from the buffer, which must outlive the allocator. The memory of the handle comes from the same
 * source, and is allocated first and returned last.
 *
 * GROWTH. The first request to the source has first_bytes. No request is larger than
 * step_max_bytes, unless one block needs more. limit_bytes limits the sum of all memory except the
 * handle. If the limit is 8 KiB or more, blocks of any size can fill at least nine tenths of the
 * limit. If the source fails, the allocator requests half as much, then a quarter, and so on, down
 * to the size that the block needs. */
typedef struct mallard_pool_options {
    size_t struct_bytes;   /**< required: sizeof */
    size_t block_bytes;    /**< required: the size of each block */
    size_t align;          /**< 0: the largest power of two that divides
                            * block_bytes, at most 16. Set it for a struct
                            * with a flexible array member. */
    int growth;            /**< enum mallard_growth */
    int sync;              /**< enum mallard_sync */
    int reuse;             /**< enum mallard_reuse */
    int check;             /**< enum mallard_check */
    size_t first_bytes;    /**< default 64 KiB; with a buffer, the whole buffer. Ordered pools
                            * request chunks of 64 KiB, more for large blocks, or less under a low
                            * limit. */
    size_t step_max_bytes; /**< default 1 MiB */
    size_t limit_bytes;    /**< default: no limit */
    size_t growth_num;     /**< the factor of geometric growth is growth_num / growth_den; default
                            * 2 */
    size_t growth_den;     /**< divisor of the factor; default 1 */
    size_t growth_add;     /**< bytes to add in linear and geometric growth */
    mallard_take take;     /**< the source; NULL: malloc or the buffer */
    mallard_give give;     /**< required with `take` */
    void* context;         /**< argument of `take` and `give` */
    void* buffer;          /**< NULL: memory comes from `take` or malloc */
    size_t buffer_bytes;   /**< size of `buffer` */
} mallard_pool_options;

/** Options of mallard_arena_create: see mallard_pool_options. */
typedef struct mallard_arena_options {
    size_t struct_bytes;   /**< required: sizeof */
    int growth;            /**< enum mallard_growth */
    int sync;              /**< NONE or THREAD_CACHED of enum mallard_sync. With
                            * THREAD_CACHED, mark, rewind and expand fail. */
    int check;             /**< enum mallard_check */
    int reserved;          /**< must be 0 */
    size_t first_bytes;    /**< default 1 KiB; with a buffer, the whole buffer */
    size_t step_max_bytes; /**< default 16 MiB */
    size_t limit_bytes;    /**< default: no limit */
    size_t growth_num;     /**< the factor of geometric growth */
    size_t growth_den;     /**< divisor of that factor */
    size_t growth_add;     /**< bytes to add in linear and geometric growth */
    mallard_take take;     /**< the source; NULL: malloc or the buffer */
    mallard_give give;     /**< required with `take` */
    void* context;         /**< argument of `take` and `give` */
    void* buffer;          /**< NULL: memory comes from `take` or malloc */
    size_t buffer_bytes;   /**< size of `buffer` */
} mallard_arena_options;

/** Options of mallard_multipool_create: see mallard_pool_options. */
typedef struct mallard_multipool_options {
    size_t struct_bytes;   /**< required: sizeof */
    int growth;            /**< enum mallard_growth, for each pool */
    int sync;              /**< enum mallard_sync, but not LOCK_FREE, because a multipool grows */
    int reuse;             /**< enum mallard_reuse */
    int check;             /**< enum mallard_check */
    size_t first_bytes;    /**< default 2 KiB; with a buffer, 1 KiB */
    size_t step_max_bytes; /**< default 1 MiB */
    size_t limit_bytes;    /**< limit of each pool; default: no limit. To limit all pools together,
                            * limit the source. */
    size_t growth_num;     /**< the factor of geometric growth */
    size_t growth_den;     /**< divisor of that factor */
    size_t growth_add;     /**< bytes to add in linear and geometric growth */
    mallard_take take;     /**< the source; NULL: malloc or the buffer */
    mallard_give give;     /**< required with `take` */
    void* context;         /**< argument of `take` and `give` */
    void* buffer;          /**< NULL: memory comes from `take` or malloc */
    size_t buffer_bytes;   /**< size of `buffer` */
} mallard_multipool_options;

/** Clears the options of a pool and sets struct_bytes. */
void mallard_pool_options_init(mallard_pool_options* options, size_t struct_bytes);
/** Clears the options of an arena and sets struct_bytes. */
void mallard_arena_options_init(mallard_arena_options* options, size_t struct_bytes);
/** Clears the options of a multipool and sets struct_bytes. */
void mallard_multipool_options_init(mallard_multipool_options* options, size_t struct_bytes);

/** Statistics of an allocator, computed from all its chunks. The caller sets struct_bytes. An older
 * library sets members that it does not know to 0. */
typedef struct mallard_stats {
    size_t struct_bytes; /**< required: sizeof */
    size_t blocks_live;  /**< blocks in use; 0 for an arena, which does not count them */
    size_t bytes_live;   /**< bytes in use */
    size_t bytes_idle;   /**< free bytes, held for later blocks */
    size_t bytes_taken;  /**< live, idle and bookkeeping bytes, without the handle */
    size_t chunks;       /**< chunks held */
    size_t growths;      /**< chunk requests so far */
    size_t refills;      /**< how often an empty cache or free list was refilled */
    size_t flushes;      /**< how often a full cache returned half of its blocks */
} mallard_stats;

/** What kind of address a pointer is for an allocator. */
typedef enum mallard_validity {
    MALLARD_MISS = 0,   /**< not in a chunk of the allocator */
    MALLARD_VALID = 1,  /**< the first byte of a block in use */
    MALLARD_INVALID = 2 /**< in its chunks, but inside a block, free, or never allocated */
} mallard_validity;

/* --- pool: blocks of one size, freed one by one --------------------------- */

/** A pool: see mallard_pool_create. */
typedef struct mallard_pool mallard_pool;

/** Makes a pool. Before the first allocation, the pool uses less than 1 KiB, for its handle. */
mallard_pool* mallard_pool_create(const mallard_pool_options* options);

/** Destroys a pool and its blocks, and returns all memory to the source. */
void mallard_pool_destroy(mallard_pool* pool);

/** Allocates a block. The block is not zeroed. */
void* mallard_pool_allocate(mallard_pool* pool);
/** Frees a block of this pool. */
void mallard_pool_free(mallard_pool* pool, void* block);

/** Fills `out` with `count` blocks. After a failure, no block was allocated, and all `count`
 * elements of `out` are NULL.
 */
int mallard_pool_allocate_batch(mallard_pool* pool, void** out, size_t count);
/** Frees `count` blocks of this pool. */
void mallard_pool_free_batch(mallard_pool* pool, void* const* blocks, size_t count);

/** Frees every block and keeps the memory. */
void mallard_pool_reset(mallard_pool* pool);
/** Frees every block and returns the memory to the source. */
void mallard_pool_release(mallard_pool* pool);
/** Returns idle memory to the source, except for keep_bytes bytes. */
void mallard_pool_trim(mallard_pool* pool, size_t keep_bytes);

/** Returns the size of each block, which is block_bytes rounded up to a multiple of the
 * alignment. */
size_t mallard_pool_block_bytes(const mallard_pool* pool);
/** Returns the alignment of each block. */
size_t mallard_pool_block_align(const mallard_pool* pool);

/** Returns 1 if `p` points into a chunk of the pool, else 0. O(log chunks). */
int mallard_pool_owns(const mallard_pool* pool, const void* p);
/** Returns whether `p` is a block in use, another address in a chunk, or outside all chunks. */
mallard_validity mallard_pool_classify(const mallard_pool* pool, const void* p);
/** Writes the statistics to `out`. Returns 0, or an enum mallard_error. */
int mallard_pool_stats(const mallard_pool* pool, mallard_stats* out);

/** Calls `visit` for each block in use, in address order. `visit` may free its argument, but must
 * not change the pool otherwise. */
int mallard_pool_for_each(mallard_pool* pool, void (*visit)(void* context, void* block),
                          void* context);

/** Returns the size of a buffer, at any address, that is enough for the handle and `count` blocks.
 * Requires MALLARD_REUSE_LIFO, and MALLARD_SYNC_NONE or MALLARD_SYNC_MUTEX. Returns 0 for an
 * error. */
size_t mallard_pool_bytes_for(const mallard_pool_options* options, size_t count);

/* --- arena: blocks by moving a pointer, freed together -------------------- */

/** An arena: see mallard_arena_create. */
typedef struct mallard_arena mallard_arena;

/** Makes an arena. If `options` is NULL, all options have their defaults. */
mallard_arena* mallard_arena_create(const mallard_arena_options* options);
/** Destroys an arena and its blocks, and returns all memory to the source. */
void mallard_arena_destroy(mallard_arena* arena);

/** Allocates a block. An `align` of 0 means 16, the alignment of max_align_t. A
 * block of 0 bytes has a unique address. */
void* mallard_arena_allocate(mallard_arena* arena, size_t bytes, size_t align);

/** Frees the block that was allocated last; does nothing for any other block. `bytes` and `align`
 * are those of the allocation. */
void mallard_arena_free(mallard_arena* arena, void* block, size_t bytes, size_t align);

/** Resizes a block in place. Returns 0, or MALLARD_ERROR_PLACE. Only the block that was allocated
 * last can grow, up to the end of its chunk. */
int mallard_arena_expand(mallard_arena* arena, void* block, size_t old_bytes, size_t new_bytes);

/** A position in an arena. A rewind to a mark makes all later marks stale. */
typedef struct mallard_mark {
    void* reserved[6]; /**< used by the library */
} mallard_mark;
/** Writes the current position to `out`. Returns 0, or an enum mallard_error. */
int mallard_arena_mark(mallard_arena* arena, mallard_mark* out);
/** Frees all blocks that were allocated after the mark, and keeps the memory. */
void mallard_arena_rewind(mallard_arena* arena, const mallard_mark* mark);

/** Frees every block and keeps the memory. */
void mallard_arena_reset(mallard_arena* arena);
/** Frees every block and returns the memory to the source. */
void mallard_arena_release(mallard_arena* arena);
/** Returns idle memory to the source, except for keep_bytes bytes. */
void mallard_arena_trim(mallard_arena* arena, size_t keep_bytes);
/** Writes the statistics to `out`. Returns 0, or an enum mallard_error. */
int mallard_arena_stats(const mallard_arena* arena, mallard_stats* out);

/* --- multipool: blocks of any size, freed one by one ---------------------- */

/** A multipool: see mallard_multipool_create. */
typedef struct mallard_multipool mallard_multipool;

/** Makes a multipool. If `options` is NULL, all options have their defaults. The handle uses less
 * than 1 KiB for one thread, and 20 to 36 KiB if threads share it. */
mallard_multipool* mallard_multipool_create(const mallard_multipool_options* options);
/** Destroys a multipool and its blocks, and returns all memory to the source. */
void mallard_multipool_destroy(mallard_multipool* multipool);

/** Allocates a block. Blocks have no header, so you must pass the same `bytes` and `align` to the
 * free. An `align` of 0 means 16. An `align` of 8 can save memory. For example, a block of 24 bytes
 * then uses 24 bytes, not 32. A block above 32 KiB comes directly from the source. */
void* mallard_multipool_allocate(mallard_multipool* multipool, size_t bytes, size_t align);
/** Frees a block. `bytes` and `align` are those of the allocation. */
void mallard_multipool_free(mallard_multipool* multipool, void* block, size_t bytes, size_t align);

/** Frees every block and keeps the memory. */
void mallard_multipool_reset(mallard_multipool* multipool);
/** Frees every block and returns the memory to the source. */
void mallard_multipool_release(mallard_multipool* multipool);
/** Returns idle memory to the source, except for keep_bytes_of_each_pool bytes in each pool. */
void mallard_multipool_trim(mallard_multipool* multipool, size_t keep_bytes_of_each_pool);

/** Returns 1 if `p` points into a chunk of the multipool, else 0. */
int mallard_multipool_owns(const mallard_multipool* multipool, const void* p);
/** Returns whether `p` is a block in use, another address in a chunk, or outside all chunks. */
mallard_validity mallard_multipool_classify(const mallard_multipool* multipool, const void* p);
/** Writes the statistics to `out`. Returns 0, or an enum mallard_error. */
int mallard_multipool_stats(const mallard_multipool* multipool, mallard_stats* out);

#ifdef __cplusplus
}
#endif

#endif
