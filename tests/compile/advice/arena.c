/* In render_document (render.cpp:40) */
#include <mallard/c/mallard.h>
#include <string.h>

size_t render_document(mallard_arena* memory, const char* input);

/* `memory` is made once, by mallard_arena_create(NULL). */
size_t render_document(mallard_arena* memory, const char* input)
{
    size_t length = strlen(input);
    char* copy = (char*)mallard_arena_allocate(memory, length + 1, 1); /* instead of malloc */
    if (copy != NULL)
        memcpy(copy, input, length + 1);
    mallard_arena_reset(memory); /* instead of all calls of free */
    return length;
}
