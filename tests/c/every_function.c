/* Calls every function of mallard.h. Written in C89, so that every later version of C compiles
   it too. */
#include <mallard/c/mallard.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char* what)
{
    if (holds)
        return;
    printf("failed: %s\n", what);
    failures += 1;
}

struct book {
    size_t taken;
    size_t visited;
};

static void* take(void* context, size_t bytes, size_t align)
{
    struct book* book = (struct book*)context;
    void* chunk = NULL;
    if (align <= sizeof(double))
        chunk = malloc(bytes);
    if (chunk != NULL)
        book->taken += bytes;
    return chunk;
}

static void give(void* context, void* chunk, size_t bytes, size_t align)
{
    struct book* book = (struct book*)context;
    (void)align;
    book->taken -= bytes;
    free(chunk);
}

static void visit(void* context, void* block)
{
    struct book* book = (struct book*)context;
    expect(block != NULL, "a visited block is one");
    book->visited += 1;
}

static void try_errors(void)
{
    char text[MALLARD_EXPLANATION_BYTES];
    mallard_pool_options options;

    expect(mallard_version() == MALLARD_VERSION, "header and library fit together");
    mallard_pool_options_init(&options, sizeof options);
    options.block_bytes = 48;
    options.align = 24;
    errno = 0;
    expect(mallard_pool_create(&options) == NULL, "24 is no alignment");
    expect(errno == EINVAL, "which is a mistake of the caller's");
    expect(mallard_last_error() == MALLARD_ERROR_ALIGN, "about an alignment");
    expect(strstr(mallard_explain(text, sizeof text), "24") != NULL, "and is explained");
    expect(strstr(mallard_strerror(MALLARD_ERROR_ALIGN), "power of two") != NULL, "in words");
}

static void try_pool(void)
{
    mallard_pool_options options;
    mallard_pool* pool;
    mallard_stats stats;
    struct book book;
    void* blocks[10];
    void* block;

    book.visited = 0;
    mallard_pool_options_init(&options, sizeof options);
    options.block_bytes = 48;
    options.reuse = MALLARD_REUSE_LIFO;
    expect(mallard_pool_bytes_for(&options, 100) > 4800, "a buffer for 100 blocks");
    pool = mallard_pool_create(&options);
    expect(pool != NULL, "there is a pool");

    block = mallard_pool_allocate(pool);
    memset(block, 1, 48);
    expect(mallard_pool_block_bytes(pool) == 48, "of 48 bytes");
    expect(mallard_pool_block_align(pool) == 16, "aligned to 16");
    expect(mallard_pool_owns(pool, block), "it owns its block");
    expect(mallard_pool_classify(pool, block) == MALLARD_VALID, "and knows it");
    expect(mallard_pool_allocate_batch(pool, blocks, 10) == 0, "ten more");
    expect(mallard_pool_for_each(pool, visit, &book) == 0, "all are visited");
    expect(book.visited == 11, "once each");
    mallard_pool_free_batch(pool, blocks, 10);
    stats.struct_bytes = sizeof stats;
    expect(mallard_pool_stats(pool, &stats) == 0, "there are statistics");
    expect(stats.blocks_live == 1, "of the one that is left");
    mallard_pool_free(pool, block);
    mallard_pool_reset(pool);
    mallard_pool_trim(pool, 0);
    mallard_pool_release(pool);
    mallard_pool_destroy(pool);
}

static void try_arena(void)
{
    static char bytes[4096];
    mallard_arena_options options;
    mallard_arena* arena;
    mallard_mark mark;
    mallard_stats stats;
    void* block;

    mallard_arena_options_init(&options, sizeof options);
    options.buffer = bytes;
    options.buffer_bytes = sizeof bytes;
    arena = mallard_arena_create(&options);
    expect(arena != NULL, "there is an arena");

    expect(mallard_arena_mark(arena, &mark) == 0, "and a mark");
    block = mallard_arena_allocate(arena, 100, 0);
    expect((char*)block > bytes && (char*)block < bytes + sizeof bytes, "in the buffer");
    expect(mallard_arena_expand(arena, block, 100, 200) == 0, "the last block grows");
    mallard_arena_free(arena, block, 200, 0);
    expect(mallard_arena_allocate(arena, 100, 0) == block, "and is free again");
    mallard_arena_rewind(arena, &mark);
    stats.struct_bytes = sizeof stats;
    expect(mallard_arena_stats(arena, &stats) == 0, "there are statistics");
    expect(stats.bytes_live == 0, "of nothing");
    mallard_arena_reset(arena);
    mallard_arena_trim(arena, 0);
    mallard_arena_release(arena);
    mallard_arena_destroy(arena);
}

static void try_multipool(void)
{
    mallard_multipool_options options;
    mallard_multipool* multipool;
    mallard_stats stats;
    struct book book;
    void* block;

    book.taken = 0;
    mallard_multipool_options_init(&options, sizeof options);
    options.take = take;
    options.give = give;
    options.context = &book;
    multipool = mallard_multipool_create(&options);
    if (multipool == NULL) { /* needs more alignment than `take` returns */
        expect(mallard_last_error() == MALLARD_ERROR_REFUSED, "the source refused");
        expect(book.taken == 0, "and nothing was taken");
        multipool = mallard_multipool_create(NULL);
    }

    block = mallard_multipool_allocate(multipool, 33, 1);
    expect(mallard_multipool_owns(multipool, block), "it owns its block");
    expect(mallard_multipool_classify(multipool, block) == MALLARD_VALID, "and knows it");
    stats.struct_bytes = sizeof stats;
    expect(mallard_multipool_stats(multipool, &stats) == 0, "there are statistics");
    expect(stats.bytes_live == 40, "of a block of 40");
    mallard_multipool_free(multipool, block, 33, 1);
    mallard_multipool_reset(multipool);
    mallard_multipool_trim(multipool, 0);
    mallard_multipool_release(multipool);
    mallard_multipool_destroy(multipool);
    expect(book.taken == 0, "all is given back");
}

int main(void)
{
    try_errors();
    try_pool();
    try_arena();
    try_multipool();
    return failures == 0 ? 0 : 1;
}
