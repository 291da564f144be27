/* Calls every function of malloc.h, in C99. The malloc of the program is Mallard's. */
#include <mallard/c/malloc.h>

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void free_sized(void* block, size_t bytes); /* in the C library since C23 */

static int told;

static void met(void* context, size_t held_bytes, size_t limit_bytes)
{
    assert(context == &told && held_bytes != 0);
    told |= limit_bytes == 100000 ? 1 : limit_bytes == 200000 ? 2 : 4;
}

static void test_malloc(void)
{
    char* block = mallard_malloc(100);
    assert(mallard_usable_size(block) >= 100 && mallard_usable_size(NULL) == 0);
    memcpy(block, "text", 5);
    block = mallard_realloc(block, 100000);
    assert(strcmp(block, "text") == 0);
    free(block);
    block = mallard_calloc(10, 10);
    assert(block[99] == 0);
    block = realloc(block, 1000);
    mallard_free(block);
    block = mallard_aligned_alloc(4096, 10);
    assert(((size_t)block & 4095) == 0);
    mallard_free(block);
    mallard_free(NULL);
    assert(mallard_realloc(mallard_malloc(1), 0) == NULL);
    errno = 0;
    assert(mallard_aligned_alloc(3, 10) == NULL && errno == EINVAL);
    errno = 0;
    assert(mallard_calloc((size_t)-1, 2) == NULL && errno == ENOMEM);
    errno = 0;
    assert(mallard_malloc((size_t)-1) == NULL && errno == ENOMEM);
    told = 0;
    mallard_limit(0, 1, met, &told);
    assert(mallard_malloc(1 << 25) == NULL && told == 4);
    mallard_limit(0, 0, NULL, NULL);
    (void)mallard_trim(0);
    assert(mallard_trim(0) == 0);
}

/* Tests that free_sized accepts the requested size even if realloc could not shrink the block. */
static void test_free_sized(void)
{
    void* block = malloc(300000);
    mallard_limit(0, 1, NULL, NULL);
    block = realloc(block, 100);
    mallard_limit(0, 0, NULL, NULL);
    assert(mallard_usable_size(block) >= 300000);
    free_sized(block, 100);
    free_sized(NULL, 100);
}

static void count(void* context, enum mallard_sample_event event, const mallard_sample* sample)
{
    assert(context == &told && sample->bytes >= 100 && sample->weight_bytes >= 100);
    told += event == MALLARD_SAMPLE_ALLOCATED ? 1 : 1000;
}

static void test_sampling(void)
{
    void* blocks[6];
    told = 0;
    assert(mallard_sampling(1, count, &told) == 0);
    blocks[0] = malloc(100);
    blocks[1] = calloc(10, 20);
    blocks[2] = realloc(NULL, 300);
    blocks[3] = mallard_aligned_alloc(64, 128);
    blocks[4] = mallard_malloc(100000);
    blocks[5] = mallard_realloc(malloc(100), 5000);
    assert(told == 1007);
    for (int i = 0; i < 6; ++i)
        free(blocks[i]);
    assert(told == 7007);
    assert(mallard_sampling(0, NULL, NULL) == 0);
    free(malloc(100));
    errno = 0;
    assert(told == 7007 && mallard_sampling(1, NULL, NULL) == EINVAL && errno == EINVAL);
}

static void test_heap(void)
{
    mallard_heap* const heap = mallard_heap_create(NULL);
    size_t const live = mallinfo2().uordblks;
    mallard_heap_statistics s = {.struct_bytes = sizeof s};
    char* block = mallard_heap_allocate(heap, 100);
    char* other = mallard_heap_allocate_aligned(heap, 100, 1024);
    assert(mallard_heap_owns(heap, block) && !mallard_heap_owns(heap, &heap));
    assert(((size_t)other & 1023) == 0);
    free(block);
    free(other);
    assert(mallinfo2().uordblks == live); /* blocks in the caches of heaps are not in use */
    block = mallard_heap_calloc(heap, 3, 7);
    block = mallard_heap_realloc(heap, block, 5000);
    block = realloc(block, 50000);
    assert(mallard_heap_owns(heap, block) && block[20] == 0);
    assert(mallard_heap_stats(heap, &s) == 0 && s.blocks_live == 1 && s.bytes_live >= 50000);
    mallard_heap_free(heap, block);
    mallard_heap_adopt(heap);
    mallard_heap_reset(heap);
    mallard_heap_trim(heap, 0);
    assert(mallard_heap_stats(heap, &s) == 0 && s.bytes_taken == 0 && s.bytes_taken_max != 0);
    assert(mallard_heap_allocate(heap, 1 << 22) != NULL);
    mallard_heap_limit(heap, 1, 1, NULL, NULL);
    assert(mallard_heap_allocate(heap, 1 << 22) == NULL && errno == ENOMEM);
    mallard_heap_release(heap);
    mallard_heap_destroy(heap);
}

static void test_options(void)
{
    mallard_heap_options o = {.struct_bytes = sizeof o,
                              .threads = MALLARD_HEAP_SHARED,
                              .limit_soft_bytes = 100000,
                              .limit_bytes = 200000,
                              .met = met,
                              .context = &told};
    mallard_heap* heap = mallard_heap_create(&o);
    told = 0;
    while (mallard_heap_allocate(heap, 1000) != NULL) {}
    assert(told == 3);
    mallard_heap_destroy(heap);
    o.threads = 7;
    errno = 0;
    assert(mallard_heap_create(&o) == NULL && errno == EINVAL);
    o.threads = 0;
    o.struct_bytes = 0;
    assert(mallard_heap_create(&o) == NULL);
}

static void test_null(void)
{
    mallard_heap_statistics s = {.struct_bytes = sizeof s};
    assert(mallard_heap_allocate(NULL, 1) == NULL && errno == EINVAL);
    assert(mallard_heap_allocate_aligned(NULL, 1, 16) == NULL);
    assert(mallard_heap_calloc(NULL, 1, 1) == NULL);
    assert(mallard_heap_realloc(NULL, NULL, 1) == NULL);
    assert(mallard_heap_stats(NULL, &s) == EINVAL && mallard_heap_owns(NULL, &s) == 0);
    mallard_heap_free(NULL, NULL);
    mallard_heap_reset(NULL);
    mallard_heap_release(NULL);
    mallard_heap_trim(NULL, 0);
    mallard_heap_limit(NULL, 1, 1, NULL, NULL);
    mallard_heap_adopt(NULL);
    mallard_heap_destroy(NULL);
}

int main(void)
{
    test_malloc();
    test_free_sized();
    test_sampling();
    test_heap();
    test_options();
    test_null();
    return 0;
}
