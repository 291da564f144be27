/* In render_document (render.cpp:40) */
#include <mallard/c/mallard.h>

struct structure {
    mallard_multipool* memory; /* made once for all calls, by mallard_multipool_create(NULL) */
};

void* render_document(struct structure* of, size_t bytes);
void remove_block(struct structure* of, void* block, size_t bytes);

void* render_document(struct structure* of, size_t bytes)
{
    return mallard_multipool_allocate(of->memory, bytes, 0); /* instead of malloc */
}

void remove_block(struct structure* of, void* block, size_t bytes)
{
    mallard_multipool_free(of->memory, block, bytes, 0); /* instead of free, with the size */
}
