/* Calls every function of malloc's family once, each with a different size. */
#include <dlfcn.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void need(int fine, const char* what)
{
    if (!fine) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

int main(void)
{
    void* (*const resize_array)(void*, size_t, size_t) = reallocarray;
    void* block = malloc(70001);
    free(block);
    block = calloc(7, 10001);
    free(block);
    block = realloc(NULL, 70003);
    block = realloc(block, 70004);
    block = resize_array(block, 5, 14001);
    free(block);
    block = aligned_alloc(64, 70016);
    free(block);
    block = memalign(128, 70007);
    free(block);
    need(posix_memalign(&block, 256, 70008) == 0, "posix_memalign");
    free(block);
    block = valloc(70009);
    free(block);
    block = pvalloc(70010);
    free(block);

    /* glibc 2.36 lacks the next three functions. The recorder has all of them. */
    void (*free_sized)(void*, size_t);
    void (*free_aligned_sized)(void*, size_t, size_t);
    void (*cfree)(void*);
    *(void**)&free_sized = dlsym(RTLD_DEFAULT, "free_sized");
    *(void**)&free_aligned_sized = dlsym(RTLD_DEFAULT, "free_aligned_sized");
    *(void**)&cfree = dlsym(RTLD_DEFAULT, "cfree");
    if (free_sized != NULL && free_aligned_sized != NULL && cfree != NULL) {
        free_sized(malloc(70011), 70011);
        free_aligned_sized(aligned_alloc(32, 70016), 32, 70016);
        cfree(malloc(70013));
    }

    /* Then makes calls that fail, and calls without a block. */
    free(NULL);
    volatile size_t const too_large = PTRDIFF_MAX;
    need(malloc(too_large) == NULL, "malloc of too much");
    need(calloc(too_large, 4) == NULL, "calloc of too much");
    block = malloc(70014);
    need(realloc(block, too_large) == NULL, "realloc of too much");
    need(resize_array(block, too_large, 2) == NULL, "reallocarray of too much");
    need(realloc(block, 0) == NULL, "realloc to nothing");
    puts("done");
    return 0;
}
