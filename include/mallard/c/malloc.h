/* Mallard's malloc under names of its own, and heaps: C99, any later C, and C++.
 *
 *     mallard_heap* requests = mallard_heap_create(NULL);
 *     char* text = mallard_heap_allocate(requests, 100);
 *     ...
 *     mallard_heap_release(requests);    // every block of it, at once
 *     mallard_heap_destroy(requests);
 *
 * Programs link libmallard-malloc.so (mallard::malloc) or libmallard-malloc.a
 * (mallard::malloc_static), or ask pkg-config for mallard-malloc. Neither needs a C++ runtime.
 *
 * Sizes are in bytes. Blocks are aligned to 16; an alignment is a power of two. Of 0 bytes
 * are blocks too, each of its own address.
 *
 * FAILURE. What gives a pointer gives NULL, and sets errno to ENOMEM where memory is short
 * or a limit was met, to EINVAL for a mistake of the caller's. A failed call has changed
 * nothing. A handle of NULL is what a failed create gave: then functions that free do
 * nothing, and all others fail with EINVAL. To free a block of NULL does nothing.
 *
 * Nothing here is for a signal handler.
 */
#ifndef MALLARD_MALLOC_H
#define MALLARD_MALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- malloc ------------------------------------------------------------------ */

/* As the functions of the C library without the prefix, and of the same heap where those
 * are Mallard's. Any thread. realloc to 0 bytes frees and gives NULL; a block of a heap
 * stays in its heap. */
void* mallard_malloc(size_t bytes);
void* mallard_calloc(size_t count, size_t bytes);
void* mallard_realloc(void* block, size_t bytes);
void* mallard_aligned_alloc(size_t align, size_t bytes);
void mallard_free(void* block);

/* All of it may be written to; of NULL, 0. */
size_t mallard_usable_size(const void* block);

/* Gives free memory back to the system, but for keep_bytes. 1: there was some, else 0. */
int mallard_trim(size_t keep_bytes);

/* Called by the thread that has met a limit, which may allocate and free meanwhile. Must not
 * leave by longjmp or by an exception. */
typedef void (*mallard_limit_met)(void* context, size_t held_bytes, size_t limit_bytes);

/* Of memory that blocks are in, whole units of 16 KiB; 0: none. What is held already stays.
 * Above the soft limit `met` is called, once until a quarter less is held. What would exceed
 * the hard one is tried again after a call of `met`, which may have freed something, and
 * refused. `met` may be NULL. */
void mallard_limit(size_t soft_bytes, size_t hard_bytes, mallard_limit_met met, void* context);

/* --- samples: what allocates how much ------------------------------------------- */

enum mallard_sample_event {
    MALLARD_SAMPLE_ALLOCATED = 1,
    MALLARD_SAMPLE_FREED = 2 /* its memory is nobody else's yet */
};

typedef struct mallard_sample {
    void* block;
    size_t bytes;        /* as asked for; 1 for 0 */
    double weight_bytes; /* so many this one stands for, itself among them */
} mallard_sample;

/* By the thread that allocates or frees, one call at a time. It may allocate and free; what it
 * allocates is not chosen, and of what it frees nobody is told. It must not fork, leave by
 * longjmp, an exception or cancellation, or take a lock under which another thread allocates or
 * frees. */
typedef void (*mallard_sampled)(void* context, enum mallard_sample_event event,
                                const mallard_sample* sample);

/* From now on every thread's allocations are sampled: each byte is chosen with a chance of
 * 1 in mean_bytes, apart from all others, and `call` is told of each block that has a chosen
 * one, and later that it is freed. The sum of weight_bytes over those allocated is an unbiased
 * estimate of the bytes asked for; less those freed, of the bytes that are live.
 *
 * A realloc that moves a block frees it and allocates another, which is chosen or not by
 * itself; one that leaves it where it is tells of both, with the same address, if the block
 * is a sample. What a block grows by in its place is not sampled else. Blocks of heaps are not
 * chosen, nor is anything a thread allocates after its thread-specific data have been destroyed.
 *
 * mean_bytes of 0 ends it, as does another `call`: samples that were told of before are freed
 * without a call. When this returns, no call that was there before goes on, and none begins.
 *
 * A sample takes a unit of 16 KiB, of which 4 KiB are touched, or what it needs: with a mean
 * of 512 KiB, 1 % more memory. While there is no sampling nothing is paid for it.
 *
 * 0; ENOMEM, EINVAL for no `call`, EDEADLK from within one: then nothing has changed. */
int mallard_sampling(size_t mean_bytes, mallard_sampled call, void* context);

/* --- heaps: blocks that can be freed all at once ------------------------------- */

/* A part of malloc that has its memory for itself, in chunks of 64 KiB and twice as much
 * each time up to 4 MiB; above 1 MiB, blocks have memory of their own. A heap without blocks
 * takes less than 4 KiB. Thousands of them are no burden.
 *
 * THREADS. A confined heap is with one thread: the one that made it, or adopted it last.
 * That one alone allocates, resets, asks for statistics and trims, without a lock; another
 * that asks for memory stops the process with a message. From a shared heap any thread
 * allocates, one after the other.
 *
 * Blocks of either are freed and reallocated by any thread at any time: by mallard_heap_free,
 * mallard_free, and free where that is Mallard's. But all that happens before the heap's
 * reset, release or destroy begins: no other thread uses the heap, or frees of it, meanwhile. */
typedef struct mallard_heap mallard_heap;

enum mallard_heap_threads {
    MALLARD_HEAP_CONFINED = 0, /* one thread allocates */
    MALLARD_HEAP_SHARED = 1    /* any thread allocates */
};

/* Begins with its own size, which the caller sets to sizeof; a member of 0 is a default. */
typedef struct mallard_heap_options {
    size_t struct_bytes;     /* required: sizeof */
    int threads;             /* enum mallard_heap_threads */
    int reserved;            /* 0 */
    size_t limit_soft_bytes; /* as mallard_heap_limit has them */
    size_t limit_bytes;
    mallard_limit_met met;
    void* context;
} mallard_heap_options;

/* NULL as options: all defaults, a confined heap without limits. */
mallard_heap* mallard_heap_create(const mallard_heap_options* options);

/* Frees every block, and the heap. */
void mallard_heap_destroy(mallard_heap* heap);

void* mallard_heap_allocate(mallard_heap* heap, size_t bytes);
void* mallard_heap_allocate_aligned(mallard_heap* heap, size_t bytes, size_t align);
void* mallard_heap_calloc(mallard_heap* heap, size_t count, size_t bytes);

/* A block of NULL: as mallard_heap_allocate. Else as mallard_realloc: the block stays in the
 * heap that it is of. A thread that a confined heap is not with gets, if the block must move,
 * one of whole units of 16 KiB. */
void* mallard_heap_realloc(mallard_heap* heap, void* block, size_t bytes);

/* As mallard_free, and quickest for a block of this heap in the thread that it is with. */
void mallard_heap_free(mallard_heap* heap, void* block);

/* Both free every block, in a time that does not depend on how many there are: one step a
 * chunk and a large block. release gives the memory to the rest of the program, reset keeps
 * what is in chunks. */
void mallard_heap_reset(mallard_heap* heap);
void mallard_heap_release(mallard_heap* heap);

/* Gives back chunks without a block, as long as the heap has more than keep_bytes. */
void mallard_heap_trim(mallard_heap* heap, size_t keep_bytes);

/* A confined heap is with the calling thread from now on. To the one that it was with this
 * is as if the heap were moved away: it is in no call of this heap meanwhile, and knows of it
 * before its next. */
void mallard_heap_adopt(mallard_heap* heap);

/* As mallard_limit, of memory that the heap has taken: chunks, and large blocks. `met` may use
 * the heap, but for reset, release and destroy. */
void mallard_heap_limit(mallard_heap* heap, size_t soft_bytes, size_t hard_bytes,
                        mallard_limit_met met, void* context);

/* 1 if `p` points into memory of this heap, else 0. O(1); any thread. */
int mallard_heap_owns(const mallard_heap* heap, const void* p);

/* The caller sets struct_bytes; members that the library does not know become 0. */
typedef struct mallard_heap_statistics {
    size_t struct_bytes;
    size_t blocks_live; /* with callers */
    size_t bytes_live;  /* their usable sizes */
    size_t bytes_taken; /* chunks and large blocks */
    size_t bytes_taken_max;
    size_t chunks;
    size_t large_blocks; /* above 1 MiB, and those that a foreign thread's realloc moved */
} mallard_heap_statistics;

/* 0, or EINVAL. Counts when asked: O(memory taken / 16 KiB). */
int mallard_heap_stats(mallard_heap* heap, mallard_heap_statistics* out);

/* --- for heap.hpp ---------------------------------------------------------------- */

/* Neighbouring blocks of one size class that were never allocated: from `next` up to `end`. */
typedef struct mallard_bump_range {
    char* next;
    char* end;
} mallard_bump_range;

enum { MALLARD_FRESH_LAYOUT = 1, MALLARD_FRESH_CLASSES = 35 };

/* The blocks of a heap that `thread`, and no other thread, may take without a call. `of_class[i]`
 * has those of class i of mallard::size_classes<16, 2>. To take a block, advance `next` by the size
 * of the class and clear the first 8 bytes of the block, which mark a block as free. */
typedef struct mallard_fresh {
    const void* thread; /* its __builtin_thread_pointer(); NULL: the heap is shared */
    mallard_bump_range of_class[MALLARD_FRESH_CLASSES];
} mallard_fresh;

/* Returns the blocks of a heap, for as long as the heap lives. NULL: the library that is loaded
 * does not support this layout. */
mallard_fresh* mallard_heap_fresh(mallard_heap* heap, int layout);

#ifdef __cplusplus
}
#endif

#endif
