/* In render_document (render.cpp:40) */
/* The library takes a `lua_Alloc`: lua_newstate(allocate, memory). */
#include <mallard/c/mallard.h>
#include <string.h>

void* allocate(void* memory, void* block, size_t old_bytes, size_t bytes);

/* `memory` is made once, by mallard_multipool_create(NULL). Instead of lua_close, which frees each
 * object, mallard_multipool_reset(memory) drops a state at once, if no script needs a __gc. */
void* allocate(void* memory, void* block, size_t old_bytes, size_t bytes)
{
    mallard_multipool* const from = (mallard_multipool*)memory;
    void* moved = NULL;
    if (bytes > 0) {
        moved = mallard_multipool_allocate(from, bytes, 0);
        if (moved == NULL)
            return NULL;
        if (block != NULL)
            memcpy(moved, block, old_bytes < bytes ? old_bytes : bytes);
    }
    if (block != NULL)
        mallard_multipool_free(from, block, old_bytes, 0);
    return moved;
}
