/* Mallard's malloc under prefixed names, and heaps, for C99, any later C, and C++.
 *
 *     mallard_heap* requests = mallard_heap_create(NULL);
 *     char* text = mallard_heap_allocate(requests, 100);
 *     ...
 *     mallard_heap_release(requests);    // frees every block of the heap
 *     mallard_heap_destroy(requests);
 *
 * Programs link libmallard-malloc.so (mallard::malloc) or libmallard-malloc.a
 * (mallard::malloc_static), or use the pkg-config package mallard-malloc. Neither library needs a
 * C++ runtime.
 *
 * Sizes are in bytes. Blocks are aligned to 16 bytes; an alignment is a power of two. A block of 0
 * bytes has a unique address.
 *
 * FAILURE. If a function that returns a pointer fails, it returns NULL and sets errno. The value is
 * ENOMEM if memory is short or a limit is reached, and EINVAL for a mistake of the caller. A failed
 * call changes nothing. If the heap argument is NULL, functions that return void do nothing,
 * mallard_heap_owns returns 0, and mallard_heap_realloc can resize a block. Functions that allocate
 * or return statistics then fail with EINVAL. A free of a NULL block does nothing.
 *
 * A signal handler must not call these functions.
 */
#ifndef MALLARD_MALLOC_H
#define MALLARD_MALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- malloc ------------------------------------------------------------------ */

/** Allocates a block, like malloc. Any thread may call this function. If the program's malloc is
 * Mallard's, `free` accepts blocks of mallard_malloc, and mallard_free accepts blocks of `malloc`.
 * These rules also hold for the four functions below. */
void* mallard_malloc(size_t bytes);
/** Allocates a zeroed block, like calloc. */
void* mallard_calloc(size_t count, size_t bytes);
/** Resizes a block, like realloc. A block of a heap stays in its heap. A size of 0 frees the block
 * and returns NULL. */
void* mallard_realloc(void* block, size_t bytes);
/** Allocates an aligned block, like aligned_alloc. */
void* mallard_aligned_alloc(size_t align, size_t bytes);
/** Frees a block, like free. Frees blocks of heaps too. */
void mallard_free(void* block);

/** Returns the usable size of a block. All of these bytes may be written. Returns 0 for NULL. */
size_t mallard_usable_size(const void* block);

/** Returns free memory to the system, except for keep_bytes bytes. Returns 1 if memory was
 * returned, else 0. */
int mallard_trim(size_t keep_bytes);

/** A function that is called by the thread that reaches a limit. The function may allocate and
 * free, but must not leave by longjmp or by an exception. */
typedef void (*mallard_limit_met)(void* context, size_t held_bytes, size_t limit_bytes);

/** Limits the memory that holds blocks, counted in units of 16 KiB; 0 means no limit. Memory that
 * is in use already stays in use. When the soft limit is exceeded, `met` is called. It is called
 * for the soft limit again only after less than three quarters of the limit were in use. An
 * allocation that would exceed the hard limit calls `met`, which may free blocks. Then the
 * allocation is tried once more, and fails if it would still exceed the limit. `met` may be NULL.
 */
void mallard_limit(size_t soft_bytes, size_t hard_bytes, mallard_limit_met met, void* context);

/* --- sampling: a heap profile ------------------------------------------------------ */

/** What happened to a sampled block. */
enum mallard_sample_event {
    MALLARD_SAMPLE_ALLOCATED = 1, /**< the block was allocated */
    MALLARD_SAMPLE_FREED = 2      /**< the block was freed; its memory is not reused yet */
};

/** A sampled block. */
typedef struct mallard_sample {
    void* block;         /**< the address of the block */
    size_t bytes;        /**< the requested size; 1 if 0 bytes were requested */
    double weight_bytes; /**< estimate of the allocated bytes that this sample represents */
} mallard_sample;

/** A function that is called by the thread that allocates or frees, one call at a time. The
 * function may allocate and free; its own allocations and frees are neither sampled nor reported.
 * The function must not fork, and must not leave by longjmp, an exception or cancellation. It must
 * not lock a mutex under which another thread allocates or frees. */
typedef void (*mallard_sampled)(void* context, enum mallard_sample_event event,
                                const mallard_sample* sample);

/** Starts sampling in every thread. Each allocated byte is sampled independently with the
 * probability 1 / mean_bytes. `call` is called for each block that contains a sampled byte, and
 * again when that block is freed. The sum of weight_bytes over the allocated samples is an unbiased
 * estimate of the requested bytes. That sum minus the sum over the freed samples is an estimate of
 * the live bytes.
 *
 * A realloc that moves a block counts as a free and a new allocation, which may or may not be
 * sampled. A realloc that resizes a sampled block in place reports a free and an allocation with
 * the same address. When realloc grows any other block in place, the new bytes are not sampled.
 * Blocks of heaps are not sampled, nor are allocations of a thread after its thread-specific data
 * are destroyed.
 *
 * A mean_bytes of 0 stops sampling. A new `call` replaces the one before. In both cases, the frees
 * of earlier samples are not reported. When this function returns, the earlier function is not
 * running in any thread and will not be called again.
 *
 * A sample uses 16 KiB of address space and touches 4 KiB of it, or more if the block is larger.
 * With a mean of 512 KiB, sampling adds 1 % to the memory. A program that does not sample pays
 * nothing.
 *
 * Returns 0, or an error: ENOMEM, EINVAL if `call` is NULL, or EDEADLK inside a `call`. After an
 * error, nothing has changed. */
int mallard_sampling(size_t mean_bytes, mallard_sampled call, void* context);

/* --- heaps: blocks that can be freed together ---------------------------------- */

/** An allocator with separate memory, whose blocks can be freed together. The first chunk of a heap
 * has 64 KiB, and each later chunk is twice as large as the one before, up to 4 MiB. Blocks above 1
 * MiB are not in chunks. A heap without blocks uses less than 4 KiB, so a program may have
 * thousands of heaps.
 *
 * THREADS. A confined heap belongs to the thread that made or last adopted the heap. Only this
 * thread may allocate, reset, trim and read statistics, which needs no lock. If another thread
 * allocates, the process stops with a message. From a shared heap, any thread may allocate, under a
 * lock.
 *
 * Any thread may free and reallocate blocks of both kinds of heaps, with mallard_heap_free,
 * mallard_free, or `free` if it is Mallard's. While reset, release or destroy runs, no other thread
 * may use the heap or free its blocks. */
typedef struct mallard_heap mallard_heap;

/** Which threads may allocate from a heap. */
enum mallard_heap_threads {
    MALLARD_HEAP_CONFINED = 0, /**< one thread allocates */
    MALLARD_HEAP_SHARED = 1    /**< any thread allocates */
};

/** Options of mallard_heap_create. The struct begins with its own size, which the caller sets to
 * sizeof. A 0 selects the default of a member. */
typedef struct mallard_heap_options {
    size_t struct_bytes;     /**< required: sizeof */
    int threads;             /**< enum mallard_heap_threads */
    int reserved;            /**< must be 0 */
    size_t limit_soft_bytes; /**< see mallard_heap_limit */
    size_t limit_bytes;      /**< the hard limit: see mallard_heap_limit */
    mallard_limit_met met;   /**< see mallard_heap_limit */
    void* context;           /**< argument of `met` */
} mallard_heap_options;

/** Makes a heap. NULL options mean a confined heap without limits. */
mallard_heap* mallard_heap_create(const mallard_heap_options* options);

/** Frees every block and the heap. A second call with the same handle stops the process, unless
 * mallard_heap_create has returned that handle again. */
void mallard_heap_destroy(mallard_heap* heap);

/** Allocates a block in the heap. */
void* mallard_heap_allocate(mallard_heap* heap, size_t bytes);
/** Allocates a block at a multiple of `align`. */
void* mallard_heap_allocate_aligned(mallard_heap* heap, size_t bytes, size_t align);
/** Allocates a zeroed block of `count` times `bytes` bytes. */
void* mallard_heap_calloc(mallard_heap* heap, size_t count, size_t bytes);

/** Resizes a block. The block stays in the heap from which it was allocated, even if that is not
 * `heap`. If `block` is NULL, allocates in `heap`. If a block has to move and is in a confined heap
 * of another thread, the new block occupies a multiple of 16 KiB. */
void* mallard_heap_realloc(mallard_heap* heap, void* block, size_t bytes);

/** Frees a block, like mallard_free. The fastest case is a block of `heap` that the owner thread of
 * `heap` frees. */
void mallard_heap_free(mallard_heap* heap, void* block);

/** Frees every block and keeps the chunks. The time depends only on how many chunks and blocks
 * above 1 MiB the heap has. */
void mallard_heap_reset(mallard_heap* heap);
/** Frees every block, like mallard_heap_reset, and returns the memory to the rest of the
 * program. */
void mallard_heap_release(mallard_heap* heap);

/** Returns chunks without blocks to the rest of the program, until the heap holds at most
 * keep_bytes bytes. */
void mallard_heap_trim(mallard_heap* heap, size_t keep_bytes);

/** Makes the calling thread the owner of a confined heap. The previous owner must not be inside a
 * call to this heap. Its next call must come after this one, synchronised for example by a
 * mutex. */
void mallard_heap_adopt(mallard_heap* heap);

/** Limits the memory of the heap (chunks and large blocks), like mallard_limit. `met` may use the
 * heap, except for reset, release and destroy. */
void mallard_heap_limit(mallard_heap* heap, size_t soft_bytes, size_t hard_bytes,
                        mallard_limit_met met, void* context);

/** Returns 1 if `p` points into memory of this heap, else 0. O(1). Any thread may call. */
int mallard_heap_owns(const mallard_heap* heap, const void* p);

/** Statistics of a heap. The caller sets struct_bytes. An older library sets members that it does
 * not know to 0. */
typedef struct mallard_heap_statistics {
    size_t struct_bytes;    /**< required: sizeof */
    size_t blocks_live;     /**< blocks in use by the program */
    size_t bytes_live;      /**< sum of the usable sizes of the live blocks */
    size_t bytes_taken;     /**< chunks and large blocks */
    size_t bytes_taken_max; /**< the largest bytes_taken so far */
    size_t chunks;          /**< chunks held */
    size_t large_blocks;    /**< blocks above 1 MiB, or moved by realloc in another thread */
} mallard_heap_statistics;

/** Writes the statistics to `out`. Returns 0, or EINVAL. O(bytes taken / 16 KiB). */
int mallard_heap_stats(mallard_heap* heap, mallard_heap_statistics* out);

/* --- inline allocation, for heap.hpp ----------------------------------------------- */

/** Adjacent blocks of one size class that were never allocated, from `next` up to `end`. */
typedef struct mallard_bump_range {
    char* next; /**< the next block */
    char* end;  /**< the end of the last block */
} mallard_bump_range;

/** Constants of mallard_fresh. */
enum {
    MALLARD_FRESH_LAYOUT = 1,  /**< value of `layout` for this header */
    MALLARD_FRESH_CLASSES = 35 /**< size classes */
};

/** The blocks of a heap that were never allocated. In the thread `thread`, inline code may allocate
 * such blocks without a call to the library. `of_class[i]` has the blocks of class i in
 * mallard::size_classes<16, 2>. To allocate a block, advance `next` by the size of the class, and
 * clear the first 8 bytes of the block, because a value there marks a block as free. */
typedef struct mallard_fresh {
    const void* thread; /**< the thread's __builtin_thread_pointer(); NULL: the heap is shared */
    mallard_bump_range of_class[MALLARD_FRESH_CLASSES]; /**< by size class */
} mallard_fresh;

/** Returns the blocks of a heap that were never allocated. The pointer is valid until the heap is
 * destroyed. Returns NULL if the loaded library does not support this layout. */
mallard_fresh* mallard_heap_fresh(mallard_heap* heap, int layout);

#ifdef __cplusplus
}
#endif

#endif
