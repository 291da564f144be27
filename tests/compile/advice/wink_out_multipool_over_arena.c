/* In render_document (render.cpp:40) */
#include <mallard/c/mallard.h>
#include <string.h>

size_t render_document(mallard_multipool* memory, const char* input);

/* `memory` is made once, by mallard_multipool_create(NULL). */
size_t render_document(mallard_multipool* memory, const char* input)
{
    size_t length = strlen(input);
    char* copy = (char*)mallard_multipool_allocate(memory, length + 1, 1); /* instead of malloc */
    if (copy != NULL)
        memcpy(copy, input, length + 1);
    mallard_multipool_free(memory, copy, length + 1, 1); /* instead of free: used again at once */
    mallard_multipool_reset(memory); /* frees what is left, at the end of the call */
    return length;
}
