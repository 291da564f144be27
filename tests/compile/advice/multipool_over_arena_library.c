/* In render_document (render.cpp:40) */
/* For a C library that takes an allocator: {take, resize, give}, or `allocate` alone. */
#include <mallard/c/mallard.h>
#include <string.h>

void* take(size_t count, size_t bytes);
void* resize(void* block, size_t bytes);
void give(void* block);
void* allocate(void* user, void* block, size_t old_bytes, size_t bytes);

mallard_multipool* memory; /* made once, by mallard_multipool_create(NULL) */
enum { head = 16 };        /* before each block: its size, which `resize` and `give` need */

void* take(size_t count, size_t bytes)
{
    size_t const all = count * bytes;
    char* block = NULL;
    if (bytes == 0 || count <= ((size_t)-1 - head) / bytes)
        block = (char*)mallard_multipool_allocate(memory, head + all, head);
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
    if (moved != NULL && block != NULL) {
        memcpy(moved, block, old < bytes ? old : bytes);
        give(block);
    }
    return moved;
}

void give(void* block) /* mallard_multipool_reset(memory) after each call frees what is left */
{
    size_t bytes = 0;
    if (block == NULL)
        return;
    memcpy(&bytes, (char*)block - head, sizeof bytes);
    mallard_multipool_free(memory, (char*)block - head, head + bytes, head);
}

void* allocate(void* user, void* block, size_t old_bytes, size_t bytes)
{
    (void)user;
    (void)old_bytes;
    if (bytes > 0)
        return resize(block, bytes);
    give(block);
    return NULL;
}
