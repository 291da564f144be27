/* In render_document (render.cpp:40) */
/* The library takes a `cmark_mem`: {take, resize, give}. */
#include <mallard/c/mallard.h>
#include <string.h>

void* take(size_t count, size_t bytes);
void* resize(void* block, size_t bytes);
void give(void* block);

mallard_arena* memory; /* made once, by mallard_arena_create(NULL) */
enum { head = 16 };    /* before each block: its size, which `resize` needs */

void* take(size_t count, size_t bytes)
{
    size_t const all = count * bytes;
    char* block = NULL;
    if (bytes == 0 || count <= ((size_t)-1 - head) / bytes)
        block = (char*)mallard_arena_allocate(memory, head + all, head);
    if (block == NULL)
        return NULL;
    memcpy(block, &all, sizeof all);
    return memset(block + head, 0, all);
}

void* resize(void* block, size_t bytes)
{
    size_t old = 0;
    if (block != NULL)
        memcpy(&old, (char*)block - head, sizeof old);
    void* const moved = take(1, bytes);
    if (moved != NULL && block != NULL)
        memcpy(moved, block, old < bytes ? old : bytes);
    return moved;
}

void give(void* block)
{
    (void)block; /* mallard_arena_reset(memory) after each document frees everything */
}
