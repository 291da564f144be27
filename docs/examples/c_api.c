/* Uses the C library. */
#include <mallard/c/mallard.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node* next;
    int key;
};

static void pool(void)
{
    mallard_pool_options options = {.struct_bytes = sizeof options,
                                    .block_bytes = sizeof(struct node)};
    mallard_pool* nodes = mallard_pool_create(&options);
    struct node* n = mallard_pool_allocate(nodes); /* NULL when the source is exhausted */
    n->key = 7;
    mallard_pool_free(nodes, n);
    mallard_pool_destroy(nodes);
}

static void arena(void)
{
    mallard_arena* scratch = mallard_arena_create(NULL); /* all defaults */
    char* line = mallard_arena_allocate(scratch, 80, 1);
    snprintf(line, 80, "each of these dies at the reset");

    mallard_mark here;
    mallard_arena_mark(scratch, &here);
    mallard_arena_allocate(scratch, 1000, 0); /* aligned for any type */
    mallard_arena_rewind(scratch, &here);     /* frees only those 1000 bytes */
    assert(strlen(line) == 31);

    mallard_arena_reset(scratch);
    mallard_arena_destroy(scratch);
}

static void multipool(void)
{
    mallard_multipool* memory = mallard_multipool_create(NULL);
    void* block = mallard_multipool_allocate(memory, 33, 8);
    mallard_multipool_free(memory, block, 33, 8); /* the size picks the pool */
    mallard_multipool_destroy(memory);
}

static void threads(void)
{
    mallard_pool_options options = {.struct_bytes = sizeof options,
                                    .block_bytes = sizeof(struct node),
                                    .sync = MALLARD_SYNC_THREAD_CACHED};
    mallard_pool* shared = mallard_pool_create(&options);
    void* block = mallard_pool_allocate(shared); /* any thread may allocate */
    mallard_pool_free(shared, block);            /* any other may free */
    mallard_pool_destroy(shared);
}

static void buffer(void)
{
    static char bytes[8192];
    mallard_pool_options options = {.struct_bytes = sizeof options,
                                    .block_bytes = sizeof(struct node),
                                    .buffer = bytes,
                                    .buffer_bytes = sizeof bytes};
    assert(mallard_pool_bytes_for(&options, 400) <= sizeof bytes);
    mallard_pool* fixed = mallard_pool_create(&options); /* never uses the heap */
    size_t count = 0;
    while (mallard_pool_allocate(fixed) != NULL)
        ++count;
    assert(count >= 400);
    assert(errno == ENOMEM && mallard_last_error() == MALLARD_ERROR_REFUSED);
    mallard_pool_destroy(fixed);
}

struct budget {
    size_t bytes_left;
};

static void* take(void* context, size_t bytes, size_t align)
{
    struct budget* budget = context;
    void* chunk = NULL; /* NULL reports a failure: the caller may ask for less next */
    if (bytes <= budget->bytes_left && posix_memalign(&chunk, align, bytes) == 0)
        budget->bytes_left -= bytes;
    return chunk;
}

static void give(void* context, void* chunk, size_t bytes, size_t align)
{
    struct budget* budget = context;
    budget->bytes_left += bytes; /* bytes and alignment are those of the call of `take` */
    (void)align;
    free(chunk);
}

static void source(void)
{
    struct budget budget = {1 << 20};
    mallard_arena_options options = {
        .struct_bytes = sizeof options, .take = take, .give = give, .context = &budget};
    mallard_arena* bounded = mallard_arena_create(&options);
    while (mallard_arena_allocate(bounded, 1000, 8) != NULL)
        ;
    mallard_arena_destroy(bounded);
    assert(budget.bytes_left == 1 << 20);
}

static void errors(void)
{
    mallard_pool_options options = {.struct_bytes = sizeof options, .block_bytes = 48, .align = 24};
    mallard_pool* none = mallard_pool_create(&options);
    if (none == NULL) {
        char why[MALLARD_EXPLANATION_BYTES];
        fputs(mallard_explain(why, sizeof why), stderr);
    }
    assert(errno == EINVAL && mallard_last_error() == MALLARD_ERROR_ALIGN);

    char why[MALLARD_EXPLANATION_BYTES];
    mallard_explain(why, sizeof why);
    assert(strcmp(why, "mallard_pool_create: align is 24, which is not a power of two\n"
                       "  nothing was done\n"
                       "  help: pass 0 for the default, or the alignment of the type: 8, 16, 32, "
                       "...\n") == 0);
}

static void statistics(void)
{
    mallard_pool_options options = {.struct_bytes = sizeof options, .block_bytes = 64};
    mallard_pool* blocks = mallard_pool_create(&options);
    void* block = mallard_pool_allocate(blocks);

    mallard_stats now = {.struct_bytes = sizeof now};
    mallard_pool_stats(blocks, &now);
    assert(now.blocks_live == 1 && now.bytes_live == 64);

    mallard_pool_free(blocks, block);
    mallard_pool_destroy(blocks);
}

int main(void)
{
    pool();
    arena();
    multipool();
    threads();
    buffer();
    source();
    errors();
    statistics();
    return 0;
}
