/* In render_document (render.cpp:40) */
#include <mallard/c/mallard.h>

struct object { /* the type that is made there */
    long id;
    double value;
};

/* `pool` is made once, by mallard_pool_create, with .block_bytes = sizeof(struct object). */
struct object* render_document(mallard_pool* pool, long id);
void remove_object(mallard_pool* pool, struct object* gone);

struct object* render_document(mallard_pool* pool, long id)
{
    struct object* made = (struct object*)mallard_pool_allocate(pool); /* instead of malloc */
    if (made != NULL)
        made->id = id;
    return made;
}

void remove_object(mallard_pool* pool, struct object* gone)
{
    mallard_pool_free(pool, gone); /* instead of free */
}
